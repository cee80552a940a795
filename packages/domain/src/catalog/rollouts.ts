import { desc } from "drizzle-orm";
import type { Database } from "../database.ts";
import { isAnyOf } from "../id-list.ts";
import { rollouts } from "../schema/index.ts";
import type { RolloutState } from "../vocabulary.ts";

/** The offer of one firmware to the devices of a channel. */
export interface Rollout {
  /** Its public id. */
  readonly id: string;
  readonly channel: string;
  readonly state: RolloutState;
  /** The greatest is tried first; among equals the newest firmware. */
  readonly priority: number;
  /** The share of the fleet in hundredths of a percent: 10000 is everybody. */
  readonly percentageBasisPoints: number;
  readonly allowDowngrade: boolean;
  readonly requiresConfirmation: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** The rollouts of some firmware, newest first, by the firmware's internal id. */
export async function rolloutsOf(
  db: Database,
  firmwareRowIds: readonly bigint[],
): Promise<ReadonlyMap<bigint, readonly Rollout[]>> {
  if (firmwareRowIds.length === 0) return new Map();
  const rows = await db
    .select()
    .from(rollouts)
    .where(isAnyOf(rollouts.firmwareId, firmwareRowIds))
    .orderBy(desc(rollouts.id));
  return new Map(
    [...Map.groupBy(rows, (row) => row.firmwareId)].map(([firmwareRowId, group]) => [
      firmwareRowId,
      group.map(toRollout),
    ]),
  );
}

function toRollout(row: typeof rollouts.$inferSelect): Rollout {
  const { channel, state, priority, percentageBasisPoints, allowDowngrade, requiresConfirmation } = row;
  const { publicId: id, createdAt, updatedAt } = row;
  return {
    ...{ id, channel, state, priority, percentageBasisPoints, allowDowngrade, requiresConfirmation },
    ...{ createdAt, updatedAt },
  };
}
