import { and, eq, inArray, sql } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import { type Rollout, toRollout } from "../catalog/rollouts.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { firmware, rollouts } from "../schema/index.ts";
import type { AuditAction, RolloutState } from "../vocabulary.ts";
import { alignCounters, beginCounting } from "./counters.ts";
import { getRollout, type LockedRollout, lockRollout, writeRollout } from "./rollouts.ts";

/** What an operator can do with a rollout: from which states it leads to which one. */
const STEPS = {
  start: { from: ["draft"], to: "running" },
  pause: { from: ["running"], to: "paused" },
  resume: { from: ["paused"], to: "running" },
  finish: { from: ["running", "paused"], to: "finished" },
  stop: { from: ["draft", "running", "paused"], to: "stopped" },
} as const satisfies Record<string, { readonly from: readonly RolloutState[]; readonly to: RolloutState }>;

export type RolloutStep = keyof typeof STEPS;
/** The words for it, in the order of a rollout's life. */
export const ROLLOUT_STEPS: readonly RolloutStep[] = ["start", "pause", "resume", "finish", "stop"];

/** States from which a rollout can still offer its firmware. */
export const OPEN_ROLLOUT_STATES = ["draft", "running", "paused"] as const satisfies readonly RolloutState[];

/**
 * Takes a rollout one step on; one that is there already is left as it is, so that a request whose answer was lost can be
 * repeated. From the commit on:
 * - `start`, `resume`: devices are offered the firmware; thresholds count anew.
 * - `pause`: nothing new is offered, and what a device has not begun is held back.
 * - `finish`: nothing new is offered; a device that has begun may finish. For good.
 * - `stop`: as with a withdrawal, open attempts end, unless the device is past the download. For good.
 *
 * Open attempts are left to each device's next check. Throws NOT_FOUND, or INVALID_STATE where the step does not lead on
 * from the state, or the firmware is not released.
 */
export async function takeRolloutStep(
  db: Database,
  input: { readonly actor: Actor; readonly rolloutId: string; readonly step: RolloutStep },
): Promise<Rollout> {
  const { actor, step } = input;
  return db.transaction(async (tx) => {
    const found = await lockRollout(tx, input.rolloutId);
    const { rollout } = found;
    const { from, to } = STEPS[step];
    if (rollout.state === to) return toRollout(found);
    if (!from.some((state) => state === rollout.state)) {
      throw new OtaError("INVALID_STATE", `${WORDS[step]} a rollout that is ${rollout.state}.`, {
        details: { state: rollout.state },
      });
    }
    if (to === "running") await requireReleased(tx, found);
    await enterState(tx, { found, to });
    if (to === "running") await beginCounting(tx, rollout.id);
    await recordAudit(tx, {
      actor,
      action: `rollout.${step}` satisfies AuditAction,
      subjectId: rollout.publicId,
      before: { state: rollout.state, pausedBy: rollout.pausedBy },
      after: { state: to, pausedBy: to === "paused" ? "operator" : null },
    });
    return getRollout(tx, input);
  });
}

const WORDS: Readonly<Record<RolloutStep, string>> = {
  start: "Only a draft is started, not",
  pause: "Only a running rollout is paused, not",
  resume: "Only a paused rollout is resumed, not",
  finish: "Only a running or paused rollout is finished, not",
  stop: "Nothing is left to stop of",
};

async function enterState(
  tx: Database,
  { found, to }: { readonly found: LockedRollout; readonly to: RolloutState },
): Promise<void> {
  const over = to === "finished" || to === "stopped";
  const change = {
    state: to,
    pausedBy: to === "paused" ? ("operator" as const) : null,
    ...(over ? { endedAt: sql`now()` } : {}),
    ...(to === "running" ? { startedAt: sql`coalesce(${rollouts.startedAt}, now())` } : {}),
  };
  await writeRollout(tx, { found, change });
}

async function requireReleased(tx: Database, { rollout }: LockedRollout): Promise<void> {
  const [target] = await tx.select({ state: firmware.state }).from(firmware).where(eq(firmware.id, rollout.firmwareId));
  if (target?.state === "released") return;
  throw new OtaError(
    "INVALID_STATE",
    `Its firmware is ${target?.state}: only released firmware is offered.${target?.state === "draft" ? " Release it first." : ""}`,
    {
      details: { firmwareState: target?.state },
    },
  );
}

/**
 * Stops every open rollout of a firmware, in a transaction that holds the product's lock and increments the catalog's
 * revision by itself. Returns which they were, the oldest first.
 */
export async function stopRolloutsOf(
  tx: Database,
  firmwareRowId: bigint,
): Promise<readonly { readonly rolloutId: string; readonly channel: string }[]> {
  const stopped = await tx
    .update(rollouts)
    .set({
      ...{ state: "stopped", pausedBy: null },
      ...{ revision: sql`${rollouts.revision} + 1`, endedAt: sql`now()`, updatedAt: sql`now()` },
    })
    .where(and(eq(rollouts.firmwareId, firmwareRowId), inArray(rollouts.state, OPEN_ROLLOUT_STATES)))
    .returning({ id: rollouts.id, rolloutId: rollouts.publicId, channel: rollouts.channel });
  await alignCounters(
    tx,
    stopped.map(({ id }) => id),
  );
  return stopped
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map(({ rolloutId, channel }) => ({ rolloutId, channel }));
}
