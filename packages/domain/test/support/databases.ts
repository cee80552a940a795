import { PGlite } from "@electric-sql/pglite";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { drizzle as drizzlePglite } from "drizzle-orm/pglite";
import { migrate as migratePglite } from "drizzle-orm/pglite/migrator";
import { drizzle as drizzlePostgres } from "drizzle-orm/postgres-js";
import { migrate as migratePostgres } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";
import { afterAll, beforeAll, describe } from "vitest";
import { type Database, migrationsFolder, schema } from "../../src/index.ts";

/** A fresh database with all migrations applied. */
export interface TestDatabase {
  readonly db: Database;
  /** Raw SQL by the driver itself: for looking at rows and plans behind the domain's back. */
  query(text: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** A fresh database on the run's PostgreSQL. */
export async function openPostgres(): Promise<TestDatabase> {
  const client = postgres(await createTestDatabase(), { max: 20, onnotice: () => {} });
  const db = drizzlePostgres(client, { schema });
  await migratePostgres(db, { migrationsFolder });
  return { db, query: async (text) => [...(await client.unsafe(text))], close: () => client.end() };
}

/** A fresh database in memory, in this process. */
export async function openPglite(): Promise<TestDatabase> {
  const client = await PGlite.create();
  const db = drizzlePglite(client, { schema });
  await migratePglite(db, { migrationsFolder });
  return {
    db,
    query: async (text) => (await client.query<Record<string, unknown>>(text)).rows,
    close: () => client.close(),
  };
}

/**
 * Runs the same cases on both kinds of database. All blocks of a test file share one database of each kind, because
 * opening PGlite takes seconds: cases make records with names of their own.
 */
export function describeOnDatabases(unit: string, cases: (database: () => TestDatabase) => void): void {
  describe.skipIf(!hasPostgres)(`${unit} on PostgreSQL`, () => cases(sharedDatabase(openPostgres)));
  describe(`${unit} on PGlite`, () => cases(sharedDatabase(openPglite)));
}

/** Runs the cases on PostgreSQL alone, on the database that the test file shares. */
export function describeOnPostgres(unit: string, cases: (database: () => TestDatabase) => void): void {
  describe.skipIf(!hasPostgres)(`${unit} on PostgreSQL`, () => cases(sharedDatabase(openPostgres)));
}

const opened = new Map<() => Promise<TestDatabase>, Promise<TestDatabase>>();
const users = new Map<() => Promise<TestDatabase>, number>();

/** Opened by the first block that needs it, closed after the last one; blocks are counted while the file is collected. */
function sharedDatabase(open: () => Promise<TestDatabase>): () => TestDatabase {
  let database: TestDatabase | undefined;
  users.set(open, (users.get(open) ?? 0) + 1);
  beforeAll(async () => {
    const opening = opened.get(open) ?? open();
    opened.set(open, opening);
    database = await opening;
  });
  afterAll(async () => {
    const left = (users.get(open) ?? 1) - 1;
    users.set(open, left);
    if (left === 0) await database?.close();
  });
  return () => {
    if (database === undefined) throw new Error("The database is open only while tests run.");
    return database;
  };
}
