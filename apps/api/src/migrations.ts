import type { PGlite } from "@electric-sql/pglite";
import { migrationsFolder, type schema } from "@ota/domain";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type { PgliteDatabase } from "drizzle-orm/pglite";
import { migrate as runPglite } from "drizzle-orm/pglite/migrator";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as runPostgres } from "drizzle-orm/postgres-js/migrator";
import postgres, { type Sql } from "postgres";
import type { Config, PostgresConfig } from "./config.ts";

/** The database's schema is older than this version of the service needs. */
export class SchemaOutdatedError extends Error {
  constructor() {
    super(
      "The database's schema is older than this version of the service needs, and OTA_MIGRATE=off leaves it alone. Run " +
        "this version once with OTA_MIGRATE=only.",
    );
    this.name = "SchemaOutdatedError";
  }
}

/** Brings an embedded database's schema up to date, or checks it. The folder's lock keeps other processes away. */
export async function migrateEmbedded(db: EmbeddedDrizzle, mode: Config["migrate"]): Promise<void> {
  if (mode !== "off") await runPglite(db, { migrationsFolder });
  else requireCurrent(await newestApplied(async (text) => (await db.$client.query(text)).rows));
}

/** "OTA" in ASCII, then 1: what the advisory lock of the migrations is known by in the database. */
const MIGRATION_LOCK = 0x4f_54_41_01;

/**
 * Brings a PostgreSQL schema up to date, or checks it. Any number of processes may call this at once: one migrates, the
 * others wait and find nothing to do. The lock belongs to the very session that migrates, so a process that dies gives
 * it back, and what it had not committed is undone.
 */
export async function migratePostgres(config: PostgresConfig, mode: Config["migrate"]): Promise<void> {
  // One connection, and no statement timeout: a migration takes the time that the data need.
  const sql = postgres(config.url, {
    max: 1,
    connect_timeout: config.connectTimeoutMs / 1000,
    max_lifetime: null,
    onnotice: () => {},
    connection: { application_name: "ota-api migrations" },
  });
  try {
    if (mode === "off") requireCurrent(await newestApplied((text) => sql.unsafe(text)));
    else await migrateUnderLock(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function migrateUnderLock(sql: Sql): Promise<void> {
  await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
  await runPostgres(drizzle(sql), { migrationsFolder });
  const [unlocked] = await sql`select pg_advisory_unlock(${MIGRATION_LOCK}) as ours`;
  if (unlocked?.["ours"] !== true) throw new Error("The connection was lost during the migration. Start again.");
}

type Query = (text: string) => Promise<readonly unknown[]>;
type EmbeddedDrizzle = PgliteDatabase<typeof schema> & { readonly $client: PGlite };

/** When the newest migration that the database has was made; 0: it has none. */
async function newestApplied(query: Query): Promise<number> {
  const [table] = await query("select to_regclass('drizzle.__drizzle_migrations') is not null as found");
  if (!(table as { found: boolean }).found) return 0;
  const [row] = await query("select max(created_at)::text as newest from drizzle.__drizzle_migrations");
  return Number((row as { newest: string | null }).newest ?? 0);
}

/** A schema newer than ours is fine: each version of the service works on the schema of the next. */
function requireCurrent(newestAppliedMs: number): void {
  const needed = readMigrationFiles({ migrationsFolder }).at(-1)?.folderMillis ?? 0;
  if (newestAppliedMs < needed) throw new SchemaOutdatedError();
}
