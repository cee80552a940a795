import { eq, inArray } from "drizzle-orm";
import {
  type Actor,
  type AuditAction,
  changeAllowList,
  createRollout,
  type Database,
  type RolloutStep,
  takeRolloutStep,
  updateRollout,
} from "../../src/index.ts";
import { settleRollout } from "../../src/rollouts/settle-rollout.ts";
import { rolloutCounters, rollouts } from "../../src/schema/index.ts";
import type { AuditedChange } from "../support/audited-change.ts";
import { aDevice, SYSTEM } from "../support/records.ts";
import { aReleasedDraft } from "./support.ts";

type RolloutAction = Extract<AuditAction, `rollout.${string}`>;

/** A change of a rollout of each kind. */
export function rolloutChanges(actor: Actor): Record<RolloutAction, AuditedChange> {
  return {
    "rollout.create": async (db) => {
      const { firmware } = await aReleasedDraft(db);
      const { id } = await createRollout(db, { actor, firmwareId: firmware.id });
      return { subjectId: id, again: () => createRollout(db, { actor, firmwareId: "gone" }) };
    },
    "rollout.update": async (db) => {
      const { id } = await aReleasedDraft(db);
      const change = () => updateRollout(db, { actor, rolloutId: id, priority: 3 });
      await change();
      return { subjectId: id, again: change };
    },
    "rollout.start": (db) => step(db, actor, "start"),
    "rollout.pause": (db) => step(db, actor, "pause", ["start"]),
    "rollout.resume": (db) => step(db, actor, "resume", ["start", "pause"]),
    "rollout.advance": advance,
    "rollout.finish": (db) => step(db, actor, "finish", ["start"]),
    "rollout.stop": (db) => step(db, actor, "stop"),
    "rollout.allow_devices": (db) => listed(db, actor, "allow"),
    "rollout.disallow_devices": (db) => listed(db, actor, "disallow"),
  };
}

async function step(db: Database, actor: Actor, name: RolloutStep, before: readonly RolloutStep[] = []) {
  const { id: rolloutId } = await aReleasedDraft(db);
  for (const one of before) await takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: one });
  const change = () => takeRolloutStep(db, { actor, rolloutId, step: name });
  await change();
  return { subjectId: rolloutId, again: change };
}

async function listed(db: Database, actor: Actor, name: "allow" | "disallow") {
  const rollout = await aReleasedDraft(db);
  const { device } = await aDevice(db, rollout.firmware.product);
  const input = { rolloutId: rollout.id, deviceIds: [device.id] };
  if (name === "disallow") await changeAllowList(db, { actor: SYSTEM, change: "allow", ...input });
  const change = () => changeAllowList(db, { actor, change: name, ...input });
  await change();
  return { subjectId: rollout.id, again: change };
}

/** The service's own doing. */
async function advance(db: Database) {
  const phase = { minSucceeded: 1, minSuccessBasisPoints: 0 };
  const phases = [5_000, 10_000].map((percentageBasisPoints) => ({ ...phase, percentageBasisPoints }));
  const { id: rolloutId } = await aReleasedDraft(db, { phases });
  await takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: "start" });
  const itsRowId = db.select({ id: rollouts.id }).from(rollouts).where(eq(rollouts.publicId, rolloutId));
  await db.update(rolloutCounters).set({ succeeded: 1 }).where(inArray(rolloutCounters.rolloutId, itsRowId));
  const change = () => db.transaction((tx) => settleRollout(tx, rolloutId));
  await change();
  return { subjectId: rolloutId, again: change, by: SYSTEM };
}
