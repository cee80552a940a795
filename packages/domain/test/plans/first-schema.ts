import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";
import { migrationsFolder } from "../../src/index.ts";

/** Gives an empty database the schema of the first migration alone, for data to be there when the others come. */
export async function migrateToFirst(client: postgres.Sql): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ota-migrations-"));
  try {
    await cp(migrationsFolder, folder, { recursive: true });
    const journalFile = join(folder, "meta/_journal.json");
    const journal = JSON.parse(await readFile(journalFile, "utf8"));
    await writeFile(journalFile, JSON.stringify({ ...journal, entries: journal.entries.slice(0, 1) }));
    await migrate(drizzle(client), { migrationsFolder: folder });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What the other migrations took, and how long others had to wait meanwhile. */
export interface MigrationTimes {
  readonly totalMs: number;
  /** The longest wait of a statement that reads a device, as every check does. */
  readonly readBlockedMs: number;
  /** The longest wait of a statement that writes an attempt, as reports do. */
  readonly writeBlockedMs: number;
}

/** Brings the database from the first schema to the newest, while others read and write. */
export async function migrateToNewest(url: string): Promise<MigrationTimes> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  const others = postgres(url, { max: 2, onnotice: () => {} });
  let running = true;
  const longestWait = async (text: string) => {
    let longestMs = 0;
    while (running) {
      const startedAt = performance.now();
      await others.unsafe(text);
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return longestMs;
  };
  try {
    const reads = longestWait("select id from devices where id = 1");
    const writes = longestWait("update upgrade_attempts set updated_at = now() where id = 1");
    const startedAt = performance.now();
    try {
      await migrate(drizzle(client), { migrationsFolder });
    } finally {
      running = false;
    }
    const totalMs = performance.now() - startedAt;
    return { totalMs, readBlockedMs: await reads, writeBlockedMs: await writes };
  } finally {
    await Promise.all([client.end(), others.end()]);
  }
}
