import { and, eq, isNull, lt, type SQL, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import type { RolloutFacts } from "../decide/facts.ts";
import { isAnyOf } from "../id-list.ts";
import { rolloutCounters } from "../schema/index.ts";

/**
 * Takes a place in the rollout for an attempt that this transaction is about to open. False where there is none any more,
 * or the rollout has changed since it was decided on. A rollout that counts no places has one for everybody.
 *
 * The counter's row is the last lock that a transaction takes; who waits for it sees the places as they are then.
 */
export async function takePlace(
  tx: Database,
  { rollout, newcomer }: { readonly rollout: RolloutFacts; readonly newcomer: boolean },
): Promise<boolean> {
  const { id, revision, counted, maxConcurrent, maxTotal } = rollout;
  if (!counted) return true;
  const granted = newcomer ? 1 : 0;
  const within: (SQL | undefined)[] = [
    maxConcurrent === null ? undefined : lt(rolloutCounters.live, maxConcurrent),
    maxTotal === null || !newcomer ? undefined : lt(rolloutCounters.granted, maxTotal),
  ];
  const taken = await tx
    .update(rolloutCounters)
    .set({ live: sql`${rolloutCounters.live} + 1`, granted: sql`${rolloutCounters.granted} + ${granted}::integer` })
    .where(
      and(
        eq(rolloutCounters.rolloutId, id),
        eq(rolloutCounters.revision, revision),
        isNull(rolloutCounters.reached),
        ...within,
      ),
    )
    .returning({ id: rolloutCounters.rolloutId });
  return taken.length > 0;
}

/**
 * Locks the counters of several rollouts in the order of their ids, for a transaction that will write more than one of
 * them: in any other order two such could wait for each other.
 */
export async function lockCounters(tx: Database, rolloutIds: readonly bigint[]): Promise<void> {
  await tx
    .select({ id: rolloutCounters.rolloutId })
    .from(rolloutCounters)
    .where(isAnyOf(rolloutCounters.rolloutId, rolloutIds))
    .orderBy(rolloutCounters.rolloutId)
    .for("update");
}
