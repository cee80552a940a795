import { mkdir } from "node:fs/promises";
import { PGlite } from "@electric-sql/pglite";
import { type Database, schema } from "@ota/domain";
import { drizzle as drizzlePglite } from "drizzle-orm/pglite";
import { drizzle as drizzlePostgres } from "drizzle-orm/postgres-js";
import type { Config, EmbeddedDatabaseConfig, PostgresConfig } from "./config.ts";
import { migrateEmbedded, migratePostgres } from "./migrations.ts";
import { openPostgresClient, type StatementObserver } from "./postgres-client.ts";
import type { PoolLoad } from "./statement-flow.ts";

/** The service's database, opened and with the schema that this version needs. */
export interface OpenDatabase {
  readonly kind: "embedded" | "postgres";
  readonly db: Database;
  /** Resolves when the database has answered. */
  probe(): Promise<void>;
  /** Its connections; absent where there are none. */
  readonly pool?: DatabasePool;
  /** Waits for what is in flight, then closes. */
  close(): Promise<void>;
}

/** How busy a database's connections are. */
export interface DatabasePool {
  /** What they are doing now. */
  load(): PoolLoad;
  /**
   * The least time that a statement has taken since the last call. While none was answered and more are on their way
   * than there are connections: how long the oldest has waited. `undefined`: nothing is known.
   */
  takeDelayMs(): number | undefined;
}

/**
 * Opens the database of the configuration and brings its schema up to date, or checks it, as `migrate` says.
 *
 * @throws when it cannot be reached, or when its schema is older than this version needs and must be left alone.
 */
export function openDatabase(
  { database, migrate }: Pick<Config, "database" | "migrate">,
  options: OpenDatabaseOptions = {},
): Promise<OpenDatabase> {
  return database.kind === "embedded"
    ? openEmbedded(database, migrate)
    : openPostgres(database, { ...options, migrate });
}

/** What {@link openDatabase} may be told beside its configuration. */
export interface OpenDatabaseOptions {
  /**
   * Is told of each statement that goes to PostgreSQL.
   * @default nobody
   */
  readonly observeStatement?: StatementObserver | undefined;
}

/** The caller holds the folder's lock: two instances on one folder would lose each other's writes in silence. */
async function openEmbedded({ directory }: EmbeddedDatabaseConfig, migrate: Config["migrate"]): Promise<OpenDatabase> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const client = await PGlite.create(directory);
  try {
    const db = drizzlePglite(client, { schema });
    await migrateEmbedded(db, migrate);
    return {
      kind: "embedded",
      db,
      async probe() {
        await client.query("select 1");
      },
      close: () => client.close(),
    };
  } catch (error) {
    await client.close();
    throw error;
  }
}

async function openPostgres(
  config: PostgresConfig,
  { migrate, observeStatement }: OpenDatabaseOptions & Pick<Config, "migrate">,
): Promise<OpenDatabase> {
  await migratePostgres(config, migrate);
  const client = openPostgresClient({ ...config, observeStatement });
  return {
    kind: "postgres",
    db: drizzlePostgres(client.sql, { schema }),
    async probe() {
      await client.sql.unsafe("select 1");
    },
    pool: client,
    close: () => client.close(),
  };
}
