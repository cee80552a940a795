import { desc, eq } from "drizzle-orm";
import type { Database } from "../database.ts";
import type { AttributeFilter } from "../decide/attribute-filter.ts";
import type { MaintenanceWindow } from "../decide/window.ts";
import { isAnyOf } from "../id-list.ts";
import type { SilenceTimeouts } from "../schema/columns.ts";
import { firmware, products, rolloutCounters, rollouts } from "../schema/index.ts";
import type { RolloutPhase } from "../schema/rollouts.ts";
import type { PauseCause, RolloutState } from "../vocabulary.ts";

/** What a rollout offers to whom, when and to how many. */
export interface RolloutTerms {
  readonly channel: string;
  /** For devices in any of these; empty: whatever their groups. */
  readonly groups: readonly string[];
  readonly attributeFilter: AttributeFilter | null;
  /** The hardware it is for, within what the firmware runs on; empty: all of that. */
  readonly hardwareRevisions: readonly string[];
  /** The greatest is tried first; among equals the newest firmware. */
  readonly priority: number;
  /** The share of the devices in hundredths of a percent: 10000 is everybody. Its phase's, while it has phases. */
  readonly percentageBasisPoints: number;
  readonly phases: readonly RolloutPhase[];
  /** When updates may begin, by the device's own clock; `null`: at any time. */
  readonly window: MaintenanceWindow | null;
  /** How many attempts may be open at once; `null`: no cap. */
  readonly maxConcurrent: number | null;
  /** How many devices may ever have an attempt; `null`: no cap. */
  readonly maxTotal: number | null;
  /** So many successes since it was started or resumed pause it; `null`: none do. */
  readonly successThreshold: number | null;
  /** This share of failures among the outcomes since then pauses it; `null`: none does. */
  readonly errorThreshold: ErrorThreshold | null;
  /** In the product's place; `null`: the product's. */
  readonly maxAttempts: number | null;
  readonly backoffSeconds: number | null;
  readonly timeoutsSeconds: SilenceTimeouts;
  readonly allowDowngrade: boolean;
  readonly requiresConfirmation: boolean;
}

/** The share of failures, in hundredths of a percent, of at least so many outcomes. */
export interface ErrorThreshold {
  readonly failureBasisPoints: number;
  readonly minOutcomes: number;
}

/** The offer of one firmware to part of a fleet. */
export interface Rollout extends RolloutTerms {
  /** Its public id. */
  readonly id: string;
  readonly firmware: { readonly id: string; readonly version: string; readonly product: string };
  readonly state: RolloutState;
  /** What has paused it; `null` while it is not paused. */
  readonly pausedBy: PauseCause | null;
  /** The index of the phase that it is in. */
  readonly phaseIndex: number;
  /** What is counted where it has a cap, a threshold or phases; `null`: nothing is. */
  readonly counts: RolloutCounts | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  /** When it was finished or stopped. */
  readonly endedAt: Date | null;
  readonly updatedAt: Date;
}

export interface RolloutCounts {
  /** Attempts that are open. */
  readonly live: number;
  /** Devices that ever had an attempt. */
  readonly granted: number;
  /** Attempts that succeeded; those that failed or timed out. */
  readonly succeeded: number;
  readonly failed: number;
}

/** The rollouts of some firmware, newest first, by the firmware's internal id. */
export async function rolloutsOf(
  db: Database,
  firmwareRowIds: readonly bigint[],
): Promise<ReadonlyMap<bigint, readonly Rollout[]>> {
  if (firmwareRowIds.length === 0) return new Map();
  const rows = await selectRollouts(db).where(isAnyOf(rollouts.firmwareId, firmwareRowIds)).orderBy(desc(rollouts.id));
  return new Map(
    [...Map.groupBy(rows, (row) => row.rollout.firmwareId)].map(([firmwareRowId, group]) => [
      firmwareRowId,
      group.map(toRollout),
    ]),
  );
}

export interface RolloutRow {
  readonly rollout: typeof rollouts.$inferSelect;
  readonly firmware: Rollout["firmware"];
  readonly counters: typeof rolloutCounters.$inferSelect | null;
}

/** Rollouts with the firmware that each is for, and its counters. */
export function selectRollouts(db: Database) {
  return db
    .select({
      rollout: rollouts,
      firmware: { id: firmware.publicId, version: firmware.version, product: products.name },
      counters: rolloutCounters,
    })
    .from(rollouts)
    .innerJoin(firmware, eq(firmware.id, rollouts.firmwareId))
    .innerJoin(products, eq(products.id, firmware.productId))
    .leftJoin(rolloutCounters, eq(rolloutCounters.rolloutId, rollouts.id))
    .$dynamic();
}

export function toRollout({ rollout, firmware, counters }: RolloutRow): Rollout {
  const { publicId: id, state, pausedBy, phaseIndex, createdAt, startedAt, endedAt, updatedAt } = rollout;
  return {
    ...{ id, firmware, state, ...termsOf(rollout), pausedBy, phaseIndex, counts: countsOf(counters) },
    ...{ createdAt, startedAt, endedAt, updatedAt },
  };
}

/** The terms that a row holds. */
export function termsOf(row: typeof rollouts.$inferSelect): RolloutTerms {
  const { channel, groups, hardwareRevisions, priority, percentageBasisPoints, phases } = row;
  const { maxConcurrent, maxTotal, successThreshold, maxAttempts, backoffSeconds, timeoutsSeconds } = row;
  const { allowDowngrade, requiresConfirmation, windowDays: days } = row;
  const { windowFromMinute: fromMinute, windowToMinute: toMinute, errorThresholdBasisPoints } = row;
  return {
    ...{ channel, groups, attributeFilter: row.attributeFilter as AttributeFilter | null, hardwareRevisions, priority },
    ...{ percentageBasisPoints, phases },
    window: days === null || fromMinute === null || toMinute === null ? null : { days, fromMinute, toMinute },
    ...{ maxConcurrent, maxTotal, successThreshold },
    errorThreshold:
      errorThresholdBasisPoints === null
        ? null
        : { failureBasisPoints: errorThresholdBasisPoints, minOutcomes: row.errorThresholdMinOutcomes },
    ...{ maxAttempts, backoffSeconds, timeoutsSeconds, allowDowngrade, requiresConfirmation },
  };
}

function countsOf(counters: RolloutRow["counters"]): RolloutCounts | null {
  if (counters === null) return null;
  const { live, granted, succeeded, failed } = counters;
  return { live, granted, succeeded, failed };
}
