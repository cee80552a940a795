import { type Database, migrationsFolder, schema } from "@ota/domain";
import { createTestDatabase } from "@ota/testkit";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";

/** What a test may do to the statements of one side of a race; the product's code knows nothing of it. */
export interface StatementHooks {
  /** The text that is sent instead. */
  readonly rewrite?: (text: string) => string;
  /** Awaited before a statement is sent. */
  readonly before?: (text: string) => Promise<void>;
}

/** A fresh database on PostgreSQL, with several views of it. */
export interface PostgresTestDatabase {
  readonly db: Database;
  query(text: string): Promise<Record<string, unknown>[]>;
  /** The same database by a connection pool whose statements are changed on their way. */
  hooked(hooks: StatementHooks): Database;
  close(): Promise<void>;
}

export async function openPostgresClient(): Promise<PostgresTestDatabase> {
  const url = await createTestDatabase();
  const clients: postgres.Sql[] = [];
  const connect = () => {
    const client = postgres(url, { max: 10, onnotice: () => {} });
    clients.push(client);
    return client;
  };
  const client = connect();
  const db = drizzle(client, { schema });
  await migrate(db, { migrationsFolder });
  return {
    db,
    query: async (text) => [...(await client.unsafe(text))],
    hooked: (hooks) => drizzle(hook(connect(), hooks), { schema }),
    close: async () => {
      await Promise.all(clients.map((one) => one.end()));
    },
  };
}

/** Takes the row locks away: `for update`, whatever it is of. */
export const withoutRowLocks: StatementHooks = {
  rewrite: (text) => text.replace(/ for update( of "\w+"(, "\w+")*)?$/, ""),
};

/** The constraints and the index that keep records and open attempts unique. */
export const DROP_UNIQUE = `
  alter table upgrades drop constraint upgrades_device_id_firmware_id_unique;
  alter table upgrade_attempts drop constraint upgrade_attempts_upgrade_id_n_unique;
  drop index upgrade_attempts_live_device_id_unique;
`;

function hook<T extends postgres.ISql>(client: T, hooks: StatementHooks): T {
  const { rewrite = (text: string) => text, before = async () => {} } = hooks;
  const overrides: Record<PropertyKey, unknown> = {
    unsafe(text: string, ...rest: [never, never]) {
      const send = async (values: boolean) => {
        await before(text);
        const pending = client.unsafe(rewrite(text), ...rest);
        return values ? pending.values() : pending;
      };
      // Of a pending query, drizzle uses these two.
      return {
        values: () => send(true),
        // biome-ignore lint/suspicious/noThenProperty: a pending query is awaited as it is
        then: (...settled: [never, never]) => send(false).then(...settled),
      };
    },
    begin: (work: (tx: postgres.TransactionSql) => unknown) => {
      return (client as unknown as postgres.Sql).begin((tx) => work(hook(tx, hooks)));
    },
  };
  return new Proxy(client, {
    get: (target, property) => overrides[property] ?? Reflect.get(target, property),
  });
}
