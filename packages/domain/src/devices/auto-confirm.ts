import { and, eq } from "drizzle-orm";
import { storableMessage } from "../attempts/report-text.ts";
import type { CheckObserver } from "../check/events.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { recordReport } from "../reports/record-report.ts";
import type { AutoConfirm } from "../schema/devices.ts";
import { devices, upgradeAttempts } from "../schema/index.ts";
import { type DeviceCredentials, holdsCredentials, refusalOf } from "./credentials.ts";

/** Who says that a device consents to everything, and why. Texts that are too long are cut. */
export interface AutoConfirmWords {
  readonly initiator?: string | undefined;
  readonly remark?: string | undefined;
}

/** Whether the device consents to everything; `null`: it is asked. Throws as {@link activateAutoConfirm} does. */
export async function getAutoConfirm(db: Database, credentials: DeviceCredentials): Promise<AutoConfirm | null> {
  const [device] = await db
    .select({ autoConfirm: devices.autoConfirm })
    .from(devices)
    .where(holdsCredentials(credentials));
  if (device === undefined) throw await refusalOf(db, credentials);
  return device.autoConfirm;
}

/**
 * From now on the device consents to what it is offered, and to what it was asked about and has not answered yet: both in
 * one transaction, under the lock of the device's row. Of parallel calls one succeeds.
 *
 * @throws OtaError `ALREADY_EXISTS` where it does so already; `DEVICE_TOKEN_INVALID`, `GATEWAY_TOKEN_INVALID`,
 * `GATEWAY_TOKEN_REFUSED`; `NOT_FOUND` for a serial that no check through the gateway has registered yet.
 */
export async function activateAutoConfirm(
  db: Database,
  input: DeviceCredentials &
    AutoConfirmWords & {
      /** @default nobody looks on */
      readonly observe?: CheckObserver | undefined;
    },
): Promise<void> {
  const { initiator, remark, observe, ...credentials } = input;
  const consented = await db.transaction(async (tx) => {
    const device = await lockDevice(tx, credentials);
    if (device.autoConfirm !== null) {
      throw new OtaError("ALREADY_EXISTS", "The device consents to everything already.");
    }
    const activatedAt = new Date().toISOString();
    const autoConfirm = { initiator: storableMessage(initiator), remark: storableMessage(remark), activatedAt };
    await tx.update(devices).set({ autoConfirm }).where(eq(devices.id, device.id));
    const [waiting] = await tx
      .select({ attemptId: upgradeAttempts.id })
      .from(upgradeAttempts)
      .where(and(eq(upgradeAttempts.deviceId, device.id), eq(upgradeAttempts.state, "awaiting_confirmation")));
    if (waiting === undefined) return undefined;
    return recordReport(tx, { ...credentials, ...waiting, report: { state: "confirmed" } });
  });
  if (consented?.effect === "moved") observe?.({ kind: "moved", to: consented.attempt.state });
}

/** From now on the device is asked again, where a rollout requires its consent. Doing it again changes nothing. */
export async function deactivateAutoConfirm(db: Database, credentials: DeviceCredentials): Promise<void> {
  await db.transaction(async (tx) => {
    const { id, autoConfirm } = await lockDevice(tx, credentials);
    if (autoConfirm !== null) await tx.update(devices).set({ autoConfirm: null }).where(eq(devices.id, id));
  });
}

async function lockDevice(tx: Database, credentials: DeviceCredentials) {
  const [device] = await tx
    .select({ id: devices.id, autoConfirm: devices.autoConfirm })
    .from(devices)
    .where(holdsCredentials(credentials))
    .for("update");
  if (device === undefined) throw await refusalOf(tx, credentials);
  return device;
}
