import { eq, isNotNull } from "drizzle-orm";
import { recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { rolloutCounters, rollouts } from "../schema/index.ts";
import type { RolloutPhase } from "../schema/rollouts.ts";
import type { Threshold } from "../vocabulary.ts";
import { beginCounting } from "./counters.ts";
import { lockCounters } from "./places.ts";
import { findRollout, lockRollout, writeRollout } from "./rollouts.ts";

/** What the outcomes of a rollout's attempts have made due. */
export type DueChange =
  | { readonly kind: "pause"; readonly by: Threshold }
  | { readonly kind: "advance"; readonly phaseIndex: number; readonly phase: RolloutPhase };

type RolloutRow = typeof rollouts.$inferSelect;
type CountersRow = typeof rolloutCounters.$inferSelect;

/** What is due for a running rollout, by its counters. A threshold comes before a phase: it is there to stop it. */
export function dueChange(rollout: RolloutRow, counters: CountersRow): DueChange | undefined {
  if (rollout.state !== "running") return undefined;
  const succeeded = counters.succeeded - counters.succeededBefore;
  const failed = counters.failed - counters.failedBefore;
  const outcomes = succeeded + failed;
  if (counters.reached !== null) return { kind: "pause", by: counters.reached };
  const { errorThresholdBasisPoints: errors, errorThresholdMinOutcomes, successThreshold } = rollout;
  const enough = failed > 0 && outcomes >= errorThresholdMinOutcomes;
  if (errors !== null && enough && failed * 10_000 >= errors * outcomes)
    return { kind: "pause", by: "error_threshold" };
  if (successThreshold !== null && succeeded >= successThreshold) return { kind: "pause", by: "success_threshold" };

  const current = rollout.phases[rollout.phaseIndex];
  const next = rollout.phases[rollout.phaseIndex + 1];
  if (current === undefined || next === undefined) return undefined;
  const good = succeeded >= current.minSucceeded && succeeded * 10_000 >= current.minSuccessBasisPoints * outcomes;
  return good ? { kind: "advance", phaseIndex: rollout.phaseIndex + 1, phase: next } : undefined;
}

/** The running rollouts for which something is due, by id. There are few running ones that count anything. */
export async function findDue(
  db: Database,
): Promise<readonly { readonly rollout: RolloutRow; readonly counters: CountersRow }[]> {
  const rows = await db
    .select({ rollout: rollouts, counters: rolloutCounters })
    .from(rolloutCounters)
    .innerJoin(rollouts, eq(rollouts.id, rolloutCounters.rolloutId))
    .where(isNotNull(rolloutCounters.productId))
    .orderBy(rolloutCounters.rolloutId);
  return rows.filter(({ rollout, counters }) => dueChange(rollout, counters) !== undefined);
}

/**
 * Does what is due for one rollout: pauses it, or takes it to its next phase. It locks the product, the rollout and its
 * counters in this order, and then looks again. False: nothing is due any more.
 *
 * Nobody was given a place meanwhile: the outcome that reached a threshold has said so in its own transaction.
 */
export async function settleRollout(tx: Database, rolloutId: string): Promise<boolean> {
  const { productId, rollout: locked } = await lockRollout(tx, rolloutId);
  // The counters last, and read again under their lock: outcomes go on being counted until then.
  await lockCounters(tx, [locked.id]);
  const found = { productId, ...(await findRollout(tx, rolloutId)) };
  const { rollout, counters } = found;
  const due = counters === null ? undefined : dueChange(rollout, counters);
  if (due === undefined) return false;
  const audit = { actor: { kind: "system" }, subjectId: rollout.publicId } as const;
  const counts = counters === null ? {} : { succeeded: counters.succeeded, failed: counters.failed };
  if (due.kind === "pause") {
    await writeRollout(tx, { found, change: { state: "paused", pausedBy: due.by } });
    await recordAudit(tx, {
      ...{ ...audit, action: "rollout.pause", before: { state: rollout.state } },
      after: { state: "paused", pausedBy: due.by, ...counts },
    });
    return true;
  }
  const { phaseIndex, phase } = due;
  const { percentageBasisPoints } = phase;
  await writeRollout(tx, { found, change: { phaseIndex, percentageBasisPoints } });
  await beginCounting(tx, rollout.id);
  await recordAudit(tx, {
    ...{ ...audit, action: "rollout.advance" },
    before: { phaseIndex: rollout.phaseIndex, percentageBasisPoints: rollout.percentageBasisPoints },
    after: { phaseIndex, percentageBasisPoints, ...counts },
  });
  return true;
}
