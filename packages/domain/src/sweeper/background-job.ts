import { and, eq, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { backgroundJobs } from "../schema/index.ts";

/** Work that any process may do and one does at a time, in short transactions of which each stands for itself. */
export interface BackgroundJob {
  /** What its lock and its row are called by. */
  readonly name: string;
  /** The pause between two runs. */
  readonly intervalMs: number;
  /** Whether it has something to do all the time, so that a line in the log for each run is for debugging. */
  readonly everyday?: boolean;
  /**
   * Does one batch within the given transaction, which it alone has and which has to be short: checks wait for its row
   * locks. The job's own row is its first lock; then come products and rollouts, or devices, upgrades and attempts, and
   * the counters of rollouts last, several rows of one kind by id.
   */
  runBatch(batch: Batch): Promise<BatchResult>;
}

export interface Batch {
  readonly tx: Database;
  /** The fencing token of the lease under which it is done; `undefined`: there is none, and no row is guarded by it. */
  readonly fence: bigint | undefined;
  /** What the batch before has left, as JSON; `null`: nothing. */
  readonly position: unknown;
}

export interface BatchResult {
  /** Whether another batch is to follow in the same run. */
  readonly more: boolean;
  /** On how many rows something was done. */
  readonly rows: number;
  /** Where the next batch goes on. @default where this one did */
  readonly position?: unknown;
  /** Told once the batch is committed. */
  readonly committed?: () => void;
}

/**
 * Runs a batch in a transaction whose first statement moves the job's fence up to the lease's token, so that batches
 * come one after another whatever the lock store says. `superseded`: a newer lease has been at work, and nothing was
 * written.
 */
export async function runBatch(
  db: Database,
  { job, fence }: { readonly job: BackgroundJob; readonly fence: bigint | undefined },
): Promise<BatchResult | "superseded"> {
  const result = await db.transaction(async (tx) => {
    const row = await takeTurn(tx, { name: job.name, fence });
    if (row === undefined) return "superseded";
    const result = await job.runBatch({ tx, fence, position: row.position });
    if (result.position !== undefined) {
      await tx.update(backgroundJobs).set({ position: result.position }).where(eq(backgroundJobs.name, job.name));
    }
    return result;
  });
  if (result !== "superseded") result.committed?.();
  return result;
}

/** Makes the job's row where there is none yet. */
export async function ensureJob(db: Database, { name }: BackgroundJob): Promise<void> {
  await db.insert(backgroundJobs).values({ name }).onConflictDoNothing();
}

async function takeTurn(
  tx: Database,
  { name, fence }: { readonly name: string; readonly fence: bigint | undefined },
): Promise<{ readonly position: unknown } | undefined> {
  const [row] = await tx
    .update(backgroundJobs)
    .set({ ranAt: sql`now()`, ...(fence === undefined ? {} : { fence }) })
    .where(and(eq(backgroundJobs.name, name), notNewerThan(fence)))
    .returning({ position: backgroundJobs.position });
  return row;
}

function notNewerThan(fence: bigint | undefined): SQL | undefined {
  return fence === undefined ? undefined : or(isNull(backgroundJobs.fence), lte(backgroundJobs.fence, fence));
}
