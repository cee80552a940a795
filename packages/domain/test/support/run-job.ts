import type { BackgroundJob, Database } from "../../src/index.ts";
import { ensureJob, runBatch } from "../../src/sweeper/background-job.ts";

/** Runs a job as the sweeper does, batch by batch, to its end. Gives the rows of each batch. */
export async function runJob(db: Database, job: BackgroundJob, options: { readonly fence?: bigint } = {}) {
  await ensureJob(db, job);
  const batches: number[] = [];
  for (let more = true; more; ) {
    const result = await runBatch(db, { job, fence: options.fence });
    if (result === "superseded") throw new Error("A newer holder has done the job.");
    batches.push(result.rows);
    more = result.more;
  }
  return batches;
}
