import { readFile } from "node:fs/promises";
import type { WorkDatabase } from "./open-database.ts";
import { tableReads } from "./statement-plans.ts";
import type { Work } from "./works.ts";

/** What a work costs in one database. */
export interface WorkCost {
  /** The median, from the call to the answer. */
  readonly medianMs: number;
  /** The median of the processor time of the server's process; `undefined` where there is no /proc. */
  readonly serverMs: number | undefined;
  /** Blocks of 8 KiB of the tables that grow and their indexes that one run reads, from memory or not. */
  readonly blocks: number;
}

/** A prepared statement is planned anew five times; only then is it what a process that has run for long sends. */
const WARM_UP = 7;

/**
 * Times a work in several databases, in turns, so that whatever else the machine does meanwhile falls on all of them.
 * Gives the costs in the order of the databases.
 */
export async function timeWork(
  work: Work,
  { databases, runs }: { readonly databases: readonly WorkDatabase[]; readonly runs: number },
): Promise<readonly WorkCost[]> {
  for (const database of databases) for (let run = 0; run < WARM_UP; run += 1) await work.run(database);
  const before = await Promise.all(databases.map(({ session }) => tableReads(session)));
  const times = databases.map((): { wall: number[]; server: number[] } => ({ wall: [], server: [] }));
  for (let run = 0; run < runs; run += 1) {
    for (const [index, database] of databases.entries()) {
      const serverBefore = await processorMs(database.backendPid);
      const startedAt = performance.now();
      await work.run(database);
      times[index]?.wall.push(performance.now() - startedAt);
      const serverAfter = await processorMs(database.backendPid);
      if (serverBefore !== undefined && serverAfter !== undefined)
        times[index]?.server.push(serverAfter - serverBefore);
    }
  }
  const after = await Promise.all(databases.map(({ session }) => tableReads(session)));
  return times.map(({ wall, server }, index) => ({
    medianMs: median(wall) ?? Number.NaN,
    serverMs: median(server),
    blocks: ((after[index]?.blocks ?? 0) - (before[index]?.blocks ?? 0)) / runs,
  }));
}

/** What the process has used of a processor so far. */
async function processorMs(pid: number): Promise<number | undefined> {
  if (process.platform !== "linux") return undefined;
  const [nanoseconds] = (await readFile(`/proc/${pid}/schedstat`, "utf8")).split(" ");
  return Number(nanoseconds) / 1e6;
}

function median(values: number[]): number | undefined {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
