import { type Database, migrationsFolder, schema } from "@ota/domain";
import { createTestDatabase, hookStatements, type StatementHooks } from "@ota/testkit";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";

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
    hooked: (hooks) => drizzle(hookStatements(connect(), hooks), { schema }),
    close: async () => {
      await Promise.all(clients.map((one) => one.end()));
    },
  };
}

/** The constraints and the index that keep records and open attempts unique. */
export const DROP_UNIQUE = `
  alter table upgrades drop constraint upgrades_device_id_firmware_id_unique;
  alter table upgrade_attempts drop constraint upgrade_attempts_upgrade_id_n_unique;
  drop index upgrade_attempts_live_device_id_unique;
`;

/** Lets no decision hold until it is written: every attempt is opened under the lock of the device's row, decided again. */
export function decidedAgain(text: string): string {
  return text.replace("devices.xmin::text = given.row_writer", "false");
}
