import { eq, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { isAnyOf } from "../id-list.ts";
import { rolloutCounters, type rollouts } from "../schema/index.ts";
import { lockCounters } from "./places.ts";

/** Makes the counters of a rollout that has never run, so that nothing is missing in them. */
export async function makeCounters(tx: Database, { id, revision }: typeof rollouts.$inferSelect): Promise<void> {
  await tx.insert(rolloutCounters).values({ rolloutId: id, revision });
}

/**
 * Gives the counters of changed rollouts the rollouts' new revision, and shows them to the product's checks while the
 * rollout runs. It belongs after every change of a rollout's row, in its transaction.
 */
export async function alignCounters(tx: Database, rolloutIds: readonly bigint[]): Promise<void> {
  if (rolloutIds.length === 0) return;
  await lockCounters(tx, rolloutIds);
  await tx
    .update(rolloutCounters)
    .set({
      revision: sql`(select revision from rollouts where id = ${rolloutCounters.rolloutId})`,
      productId: sql`(
        select firmware.product_id from rollouts join firmware on firmware.id = rollouts.firmware_id
        where rollouts.id = ${rolloutCounters.rolloutId} and rollouts.state = 'running'
      )`,
    })
    .where(isAnyOf(rolloutCounters.rolloutId, rolloutIds));
}

/** Begins to count anew what thresholds and the conditions of phases look at, and takes back a threshold reached. */
export async function beginCounting(tx: Database, rolloutId: bigint): Promise<void> {
  await tx
    .update(rolloutCounters)
    .set({
      succeededBefore: sql`${rolloutCounters.succeeded}`,
      failedBefore: sql`${rolloutCounters.failed}`,
      reached: null,
      reachedAt: null,
    })
    .where(eq(rolloutCounters.rolloutId, rolloutId));
}
