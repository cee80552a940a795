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

/** A group of cases that can run on each kind of database. Records have names of their own, so that groups share one. */
export type Cases = (database: () => TestDatabase) => void;

/** Names the cases of a unit, for a test file to run on a database. */
export function casesOn(unit: string, cases: Cases): Cases {
  return (database) => describe(unit, () => cases(database));
}

/** Runs the same cases on both kinds of database. Use it once in a test file: opening PGlite takes seconds. */
export function describeOnDatabases(unit: string, cases: Cases): void {
  describe.skipIf(!hasPostgres)(`${unit} on PostgreSQL`, () => cases(freshDatabase(openPostgres)));
  describe(`${unit} on PGlite`, () => cases(freshDatabase(openPglite)));
}

/** Opens a database before the tests of the enclosing block, and closes it after them. */
export function freshDatabase(open: () => Promise<TestDatabase>): () => TestDatabase {
  let database: TestDatabase | undefined;
  beforeAll(async () => {
    database = await open();
  }, OPEN_TIMEOUT_MS);
  afterAll(() => database?.close());
  return () => {
    if (database === undefined) throw new Error("The database is open only while tests run.");
    return database;
  };
}

/** PGlite compiles and initialises itself for seconds of processor time, which a busy machine stretches. */
const OPEN_TIMEOUT_MS = 180_000;
