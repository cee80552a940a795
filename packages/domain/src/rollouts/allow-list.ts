import { and, desc, eq, lt } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import { findProduct } from "../catalog/products.ts";
import type { Database } from "../database.ts";
import { rewriteDevices } from "../devices/rewrite-devices.ts";
import { OtaError } from "../errors.ts";
import { invalidField } from "../fields.ts";
import { isAnyOf, isAnyPublicId } from "../id-list.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId } from "../public-id.ts";
import { devices, rolloutDevices, rollouts } from "../schema/index.ts";
import { findRollout } from "./rollouts.ts";

/** A device on a rollout's allow-list. */
export interface AllowedDevice {
  readonly id: string;
  readonly serial: string;
}

/** Enough for any test fleet in one request; more come with the next one. */
export const MAX_ALLOWED_AT_ONCE = 1_000;

/**
 * Puts devices on a rollout's allow-list, or takes them off it: they are in the rollout whatever its percentage, as far as
 * it addresses them otherwise. It counts from each device's next check on, at any time of the rollout's life. Answers how
 * many were not on it before, or were; asking again changes nothing.
 *
 * Throws NOT_FOUND on the rollout, or on a device that its product has not got: then nothing is changed; INVALID_FIELD.
 */
export async function changeAllowList(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly rolloutId: string;
    readonly change: "allow" | "disallow";
    /** Public ids, 1 to 1000. */
    readonly deviceIds: readonly string[];
  },
): Promise<{ readonly changed: number }> {
  const { actor, change } = input;
  const deviceIds = [...new Set(input.deviceIds)];
  if (deviceIds.length === 0 || deviceIds.length > MAX_ALLOWED_AT_ONCE) {
    invalidField("deviceIds", `1 to ${MAX_ALLOWED_AT_ONCE} ids`);
  }
  return db.transaction(async (tx) => {
    const { rollout, firmware } = await findRollout(tx, input.rolloutId);
    const found = await findDevices(tx, { product: firmware.product, deviceIds });
    await holdRollout(tx, rollout.id);
    const changed = await (change === "allow" ? allow : disallow)(tx, { rolloutId: rollout.id, found });
    if (changed.length === 0) return { changed: 0 };
    const names = found.filter(({ rowId }) => changed.includes(rowId)).map(({ id }) => id);
    await recordAudit(tx, {
      actor,
      subjectId: rollout.publicId,
      ...(change === "allow"
        ? { action: "rollout.allow_devices", after: { deviceIds: names } }
        : { action: "rollout.disallow_devices", before: { deviceIds: names }, after: { deviceIds: [] } }),
    });
    return { changed: changed.length };
  });
}

/** Lists a rollout's allow-list, the newest devices first. Throws NOT_FOUND. */
export async function listAllowedDevices(
  db: Database,
  input: PageRequest & { readonly rolloutId: string },
): Promise<Page<AllowedDevice>> {
  const window = pageWindow("allowed-devices", input);
  const { rollout } = await findRollout(db, input.rolloutId);
  const rows = await db
    .select({ rowId: devices.id, id: devices.publicId, serial: devices.serial })
    .from(rolloutDevices)
    .innerJoin(devices, eq(devices.id, rolloutDevices.deviceId))
    .where(and(eq(rolloutDevices.rolloutId, rollout.id), lt(rolloutDevices.deviceId, window.beforeId)))
    .orderBy(desc(rolloutDevices.deviceId))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: ({ rowId }) => rowId, toItem: ({ id, serial }) => ({ id, serial }) });
}

/** Keeps the rollout from being deleted, with its draft, until the end. Throws NOT_FOUND where it has been by now. */
async function holdRollout(tx: Database, rolloutId: bigint): Promise<void> {
  const [held] = await tx.select({ id: rollouts.id }).from(rollouts).where(eq(rollouts.id, rolloutId)).for("key share");
  if (held === undefined) throw new OtaError("NOT_FOUND", "There is no such rollout.");
}

interface FoundDevice {
  readonly rowId: bigint;
  readonly id: string;
}

/** The devices, locked against deletion until the end. Throws NOT_FOUND where one is missing, with its id. */
async function findDevices(
  tx: Database,
  { product, deviceIds }: { readonly product: string; readonly deviceIds: readonly string[] },
): Promise<readonly FoundDevice[]> {
  const { id: productId } = await findProduct(tx, product);
  const possible = deviceIds.filter(isPublicId);
  const found = await tx
    .select({ rowId: devices.id, id: devices.publicId })
    .from(devices)
    .where(and(isAnyPublicId(devices.publicId, possible), eq(devices.productId, productId)))
    .orderBy(devices.id)
    .for("key share");
  const known = new Set(found.map(({ id }) => id));
  const missing = deviceIds.find((id) => !known.has(id.toLowerCase()));
  if (missing === undefined) return found;
  throw new OtaError("NOT_FOUND", "The rollout's product has no such device; nothing was changed.", {
    details: { deviceId: missing.slice(0, 64) },
  });
}

interface ListChange {
  readonly rolloutId: bigint;
  readonly found: readonly FoundDevice[];
}

async function allow(tx: Database, { rolloutId, found }: ListChange): Promise<readonly bigint[]> {
  const rows = await tx
    .insert(rolloutDevices)
    .values(found.map(({ rowId: deviceId }) => ({ rolloutId, deviceId })))
    .onConflictDoNothing()
    .returning({ deviceId: rolloutDevices.deviceId });
  return rows.map(({ deviceId }) => deviceId);
}

async function disallow(tx: Database, { rolloutId, found }: ListChange): Promise<readonly bigint[]> {
  const rowIds = found.map(({ rowId }) => rowId);
  const rows = await tx
    .delete(rolloutDevices)
    .where(and(eq(rolloutDevices.rolloutId, rolloutId), isAnyOf(rolloutDevices.deviceId, rowIds)))
    .returning({ deviceId: rolloutDevices.deviceId });
  const changed = rows.map(({ deviceId }) => deviceId);
  await rewriteDevices(tx, changed);
  return changed;
}
