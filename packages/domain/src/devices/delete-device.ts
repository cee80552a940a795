import { and, eq, inArray, isNull, sql } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { CheckObserver } from "../check/events.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { countTransitions } from "../rollouts/count-transitions.ts";
import { attemptEvents, devices, rolloutDevices, upgradeAttempts, upgrades } from "../schema/index.ts";
import { findDevice } from "./device.ts";
import { knownOf } from "./update-device.ts";

/**
 * Deletes a device with all that is kept of it: its upgrades with their attempts and events, and its places on
 * allow-lists. What the audit log says of it stays. From the commit on its token is refused; a check or report of its own
 * that is under way is answered before, or refused then. One that asks through a gateway comes back with its next check.
 *
 * Throws NOT_FOUND, or INVALID_STATE where it has an open attempt and `endsAttempt` is not given; an attempt that is ended
 * by this gives its place in its rollout back, and counts as no outcome.
 */
export async function deleteDevice(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly deviceId: string;
    /** Whether an open attempt may be deleted as well. @default false */
    readonly endsAttempt?: boolean | undefined;
    /** @default nobody looks on */
    readonly observe?: CheckObserver | undefined;
  },
): Promise<void> {
  const { actor, deviceId, endsAttempt = false, observe } = input;
  const ended = await db.transaction(async (tx) => {
    const { device, product } = await findDevice(tx, deviceId, { lock: "delete" });
    const live = await liveAttemptOf(tx, device.id);
    if (live !== undefined && !endsAttempt) {
      const details = { attemptId: live.id, state: live.state };
      throw new OtaError(
        "INVALID_STATE",
        "The device has an open attempt. Cancel its upgrade first, or end it by this: endsAttempt.",
        {
          details,
        },
      );
    }
    await deleteHistory(tx, device.id);
    await tx.delete(devices).where(eq(devices.id, device.id));
    const { serial, reportedVersion, confirmedVersion } = device;
    await recordAudit(tx, {
      ...{ actor, action: "device.delete", subjectId: device.publicId },
      before: { product, serial, reportedVersion, confirmedVersion, ...knownOf(device) },
      after: { deleted: true, endedAttemptId: live?.id ?? null },
    });
    return live;
  });
  // As the counters of its rollout have it.
  if (ended !== undefined) observe?.({ kind: "moved", to: "cancelled" });
}

async function liveAttemptOf(tx: Database, deviceId: bigint) {
  const [live] = await tx
    .select({ id: upgradeAttempts.id, state: upgradeAttempts.state })
    .from(upgradeAttempts)
    .innerJoin(upgrades, eq(upgrades.id, upgradeAttempts.upgradeId))
    .where(and(eq(upgrades.deviceId, deviceId), isNull(upgradeAttempts.closedAt)));
  return live;
}

/** The device's row is locked, and with it all of this; the counters of its rollout, which everybody waits for, come last. */
async function deleteHistory(tx: Database, deviceId: bigint): Promise<void> {
  const upgradesOfDevice = tx.select({ id: upgrades.id }).from(upgrades).where(eq(upgrades.deviceId, deviceId));
  const attemptsOfDevice = tx
    .select({ id: upgradeAttempts.id })
    .from(upgradeAttempts)
    .where(inArray(upgradeAttempts.upgradeId, upgradesOfDevice));
  await tx.delete(rolloutDevices).where(eq(rolloutDevices.deviceId, deviceId));
  await tx.delete(attemptEvents).where(inArray(attemptEvents.attemptId, attemptsOfDevice));
  // An attempt that is open ends by this; those that are over were counted when they ended.
  const moved = tx.$with("moved", { rolloutId: upgradeAttempts.rolloutId }).as(sql`
    delete from upgrade_attempts using upgrades
    where upgrade_attempts.upgrade_id = upgrades.id and upgrades.device_id = ${deviceId}::bigint
    returning
      upgrade_attempts.rollout_id, upgrade_attempts.state as from_state,
      case when upgrade_attempts.closed_at is null then 'cancelled' else upgrade_attempts.state end as to_state
  `);
  const counted = tx.$with("counted", {}).as(countTransitions(sql`moved`));
  await tx.with(moved, counted).select({ attempts: sql`count(*)` }).from(moved);
  await tx.delete(upgrades).where(eq(upgrades.deviceId, deviceId));
}
