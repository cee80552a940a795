import { desc, eq } from "drizzle-orm";
import { recordTransition } from "../attempts/record-transition.ts";
import { nextState } from "../attempts/transitions.ts";
import { type Actor, recordAudit } from "../audit.ts";
import type { CheckObserver } from "../check/events.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { isPublicId } from "../public-id.ts";
import { devices, products, upgradeAttempts, upgrades } from "../schema/index.ts";
import { rewriteDevices } from "./rewrite-devices.ts";
import { getUpgrade, isCancelled, type UpgradeHistory } from "./upgrades.ts";

/**
 * Cancels an upgrade: its firmware is not offered to the device again, by whichever rollout, until {@link resetUpgrade}.
 * An open attempt ends: a device that has not begun needs not be told; one that has is asked to stop at its next check,
 * and the attempt stays open as `cancelling` until it has answered or is silent for too long. One that cannot stop goes
 * on; if it fails, that is its last attempt. Cancelling again changes nothing.
 *
 * Throws NOT_FOUND, or INVALID_STATE with `details.state` where the upgrade has succeeded.
 */
export async function cancelUpgrade(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly upgradeId: string;
    /** @default nobody looks on */
    readonly observe?: CheckObserver | undefined;
  },
): Promise<UpgradeHistory> {
  const { upgrade, reached } = await db.transaction(async (tx) => {
    const { attempt, confirmBy } = await lockUpgrade(tx, input.upgradeId);
    const { id: attemptId, n: number, state: from, cancelOutcome: before } = attempt;
    const next = nextState({ state: from, cancelOutcome: before, confirmBy }, "operator_cancel");
    if (next.effect === "closed") {
      throw new OtaError("INVALID_STATE", "There is nothing to cancel: the upgrade has succeeded.", {
        details: { state: from },
      });
    }
    if (next.effect === "moved") {
      const { state: to, cancelOutcome } = next;
      await recordTransition(tx, { attemptId, from, to, cancelOutcome });
      await recordAudit(tx, {
        actor: input.actor,
        action: "upgrade.cancel",
        subjectId: input.upgradeId,
        before: { attempt: number, state: from, cancelled: false },
        after: { attempt: number, state: to, cancelled: true },
      });
    }
    const reached = next.effect === "moved" && next.state !== from ? next.state : undefined;
    return { upgrade: await getUpgrade(tx, input), reached };
  });
  if (reached !== undefined) input.observe?.({ kind: "moved", to: reached });
  return upgrade;
}

/**
 * Forgives an upgrade's attempts so far: they count no more towards the cap, and there is no pause before the next one. A
 * cancellation is taken back; an attempt that is `cancelling` ends all the same, and the next one may follow at once.
 * Resetting again changes nothing, until there is something new to forgive.
 *
 * Throws NOT_FOUND.
 */
export async function resetUpgrade(
  db: Database,
  input: { readonly actor: Actor; readonly upgradeId: string },
): Promise<UpgradeHistory> {
  return db.transaction(async (tx) => {
    const { upgrade, attempt } = await lockUpgrade(tx, input.upgradeId);
    const { attemptsForgiven: before } = upgrade;
    const after = attempt.n;
    const cancelled = isCancelled(attempt);
    if (after !== before || cancelled) {
      await tx.update(upgrades).set({ attemptsForgiven: after }).where(eq(upgrades.id, upgrade.id));
      if (cancelled) {
        await tx.update(upgradeAttempts).set({ cancelOutcome: null }).where(eq(upgradeAttempts.id, attempt.id));
      }
      await recordAudit(tx, {
        actor: input.actor,
        action: "upgrade.reset",
        subjectId: input.upgradeId,
        before: { attemptsForgiven: before, cancelled },
        after: { attemptsForgiven: after, cancelled: false },
      });
    }
    return getUpgrade(tx, input);
  });
}

/** Reads an upgrade with its newest attempt, under the locks of the device's, the upgrade's and the attempt's row. */
async function lockUpgrade(tx: Database, publicId: string) {
  const [found] = isPublicId(publicId)
    ? await tx
        .select({ id: upgrades.id, deviceId: upgrades.deviceId })
        .from(upgrades)
        .where(eq(upgrades.publicId, publicId))
    : [];
  if (found !== undefined) {
    await tx.select({ id: devices.id }).from(devices).where(eq(devices.id, found.deviceId)).for("update");
    await rewriteDevices(tx, [found.deviceId]);
    // A statement of its own: what is read in the same one would be older than the lock.
    const [locked] = await tx
      .select({ upgrade: upgrades, attempt: upgradeAttempts, confirmBy: products.confirmBy })
      .from(upgrades)
      .innerJoin(devices, eq(devices.id, upgrades.deviceId))
      .innerJoin(products, eq(products.id, devices.productId))
      .innerJoin(upgradeAttempts, eq(upgradeAttempts.upgradeId, upgrades.id))
      .where(eq(upgrades.id, found.id))
      .orderBy(desc(upgradeAttempts.n))
      .limit(1)
      .for("update", { of: [upgrades, upgradeAttempts] });
    if (locked !== undefined) return locked;
  }
  throw new OtaError("NOT_FOUND", "There is no such upgrade.");
}
