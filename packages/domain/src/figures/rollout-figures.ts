import { eq } from "drizzle-orm";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { isAnyOf } from "../id-list.ts";
import { isPublicId } from "../public-id.ts";
import { firmware, rollouts } from "../schema/index.ts";
import type { AttemptState } from "../vocabulary.ts";
import { type AttemptCounts, type AttemptFigures, attemptFigures, countsOf } from "./attempt-figures.ts";
import { type Figure, type FiguresRequest, type LeftOff, readFigures, requireLimit } from "./read-figures.ts";

export interface RolloutFigures extends AttemptFigures {
  /**
   * The attempts by the firmware that they bring: the rollout's own first, also where it has none, then the steps to it,
   * the one with the most attempts first. Together with those left off they are `attempts`.
   */
  readonly versions: readonly RolloutVersionFigure[];
  readonly versionsLeftOff: LeftOff;
}

export interface RolloutVersionFigure {
  readonly firmware: NamedFirmware;
  readonly attempts: AttemptCounts;
}

interface NamedFirmware {
  readonly id: string;
  readonly version: string;
}

/** The figures of one rollout, kept as a product's are. Throws NOT_FOUND, and INVALID_FIELD on a bad limit. */
export async function rolloutFigures(
  db: Database,
  input: FiguresRequest & { readonly rolloutId: string },
): Promise<RolloutFigures> {
  const limit = requireLimit(input);
  const [rollout] = isPublicId(input.rolloutId)
    ? await db
        .select({ id: rollouts.id, firmware: { id: firmware.publicId, version: firmware.version } })
        .from(rollouts)
        .innerJoin(firmware, eq(firmware.id, rollouts.firmwareId))
        .where(eq(rollouts.publicId, input.rolloutId))
    : [];
  if (rollout === undefined) throw new OtaError("NOT_FOUND", "There is no such rollout.");
  const found = await readFigures(db, {
    owner: (ownerId) => eq(ownerId, rollout.id),
    ...{ kinds: ["rollout_state", "rollout_step_state"], ranked: "rollout_failure", limit },
  });
  const figures = attemptFigures(found);
  const steps = stepsOf(found.all);
  // Steps are counted besides: what they leave of all attempts is the rollout's own firmware's.
  const own = countsOf((state) =>
    steps.reduce((rest, { attempts }) => rest - attempts[state], figures.attempts[state]),
  );
  const wanted = steps.slice(0, limit - 1);
  const others = steps.slice(limit - 1);
  const names = await namesOf(db, wanted);
  return {
    ...figures,
    versions: [
      { firmware: rollout.firmware, attempts: own },
      // What has attempts is never deleted.
      ...wanted.map(({ firmwareId, attempts }) => ({ firmware: names.get(firmwareId) as NamedFirmware, attempts })),
    ],
    versionsLeftOff: { entries: others.length, count: others.reduce((sum, { total }) => sum + total, 0) },
  };
}

interface Step {
  readonly firmwareId: bigint;
  readonly attempts: AttemptCounts;
  readonly total: number;
}

/** The one with the most attempts first; of the same number, the newest firmware. */
function stepsOf(found: readonly Figure[]): Step[] {
  const byFirmware = new Map<bigint, Map<AttemptState, number>>();
  for (const { kind, key, count } of found) {
    if (kind !== "rollout_step_state") continue;
    const [id = "", state = ""] = key.split(":");
    const counts = byFirmware.get(BigInt(id)) ?? new Map<AttemptState, number>();
    byFirmware.set(BigInt(id), counts.set(state as AttemptState, count));
  }
  const steps = [...byFirmware].map(([firmwareId, counts]) => ({
    ...{ firmwareId, total: [...counts.values()].reduce((sum, count) => sum + count, 0) },
    attempts: countsOf((state) => counts.get(state) ?? 0),
  }));
  return steps.sort((a, b) => b.total - a.total || (a.firmwareId > b.firmwareId ? -1 : 1));
}

async function namesOf(db: Database, steps: readonly Step[]): Promise<ReadonlyMap<bigint, NamedFirmware>> {
  if (steps.length === 0) return new Map();
  const ids = steps.map(({ firmwareId }) => firmwareId);
  const rows = await db
    .select({ rowId: firmware.id, id: firmware.publicId, version: firmware.version })
    .from(firmware)
    .where(isAnyOf(firmware.id, ids));
  return new Map(rows.map(({ rowId, ...named }) => [rowId, named]));
}
