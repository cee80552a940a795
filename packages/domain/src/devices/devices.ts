import { and, desc, eq, lt } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import { findProduct } from "../catalog/products.ts";
import { DEFAULT_CHANNEL } from "../catalog/release.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireChannel, requirePattern, requireText } from "../fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId, newPublicId } from "../public-id.ts";
import { devices, products } from "../schema/index.ts";
import { hashToken, newToken } from "../tokens.ts";

/** One installation, known by its serial within its product. */
export interface Device {
  /** Its public id. */
  readonly id: string;
  /** The product's name. */
  readonly product: string;
  readonly serial: string;
  readonly channel: string;
  readonly hardwareRevision: string | null;
  /** What the device said last that it runs. */
  readonly reportedVersion: string | null;
  /** The last install that was confirmed; used only while the device reports no version. */
  readonly confirmedVersion: string | null;
  /** A blocked device is offered nothing and may fetch nothing. */
  readonly blocked: boolean;
  /** Up to ten seconds late, since it is written in batches. */
  readonly lastSeenAt: Date | null;
  readonly createdAt: Date;
}

/** A device with its new token, which is shown this once and cannot be read again. */
export interface DeviceWithToken {
  readonly device: Device;
  readonly token: string;
}

const SERIAL = {
  pattern: /^[A-Za-z0-9._:~-]{1,128}$/,
  expected: "1 to 128 of the characters A-Z a-z 0-9 . _ : ~ -",
};

/**
 * Registers a device and makes its token. Of parallel calls with one serial exactly one succeeds.
 * Throws NOT_FOUND where there is no such product, INVALID_FIELD, or ALREADY_EXISTS where the product has the serial:
 * whoever has lost the token rotates it.
 */
export async function registerDevice(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly product: string;
    /** `[A-Za-z0-9._:~-]{1,128}`: it goes into paths, logs and file names as it is. */
    readonly serial: string;
    /** @default "stable" */
    readonly channel?: string | undefined;
    /** @default not known */
    readonly hardwareRevision?: string | undefined;
  },
): Promise<DeviceWithToken> {
  const { actor, serial, channel = DEFAULT_CHANNEL, hardwareRevision = null } = input;
  requirePattern("serial", serial, SERIAL);
  requireChannel("channel", channel);
  if (hardwareRevision !== null) requireText("hardwareRevision", hardwareRevision);
  const token = newToken();
  return db.transaction(async (tx) => {
    const product = await findProduct(tx, input.product);
    const [row] = await tx
      .insert(devices)
      .values({
        ...{ publicId: newPublicId(), productId: product.id, serial, channel, hardwareRevision },
        tokenHash: hashToken(token),
      })
      .onConflictDoNothing()
      .returning();
    if (row === undefined) throw await serialTaken(tx, { product, serial });
    await recordAudit(tx, {
      actor,
      action: "device.register",
      subjectId: row.publicId,
      after: { product: product.name, serial, channel, hardwareRevision },
    });
    return { device: toDevice({ device: row, product: product.name }), token };
  });
}

/** Gives a device a new token; the old one is refused from the commit on. Throws NOT_FOUND. */
export async function rotateDeviceToken(
  db: Database,
  input: { readonly actor: Actor; readonly deviceId: string },
): Promise<DeviceWithToken> {
  const token = newToken();
  return db.transaction(async (tx) => {
    const found = await findDevice(tx, input.deviceId, { lock: true });
    await tx
      .update(devices)
      .set({ tokenHash: hashToken(token) })
      .where(eq(devices.id, found.device.id));
    await recordAudit(tx, {
      actor: input.actor,
      action: "device.rotate_token",
      subjectId: found.device.publicId,
      after: { serial: found.device.serial },
    });
    return { device: toDevice(found), token };
  });
}

/**
 * Changes what an operator knows about a device; what is left out stays. Blocking counts from the device's next request
 * on; an attempt that is open then is not ended by it. Giving only values that are so already changes nothing.
 * Throws NOT_FOUND or INVALID_FIELD.
 */
export async function updateDevice(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly deviceId: string;
    readonly channel?: string | undefined;
    /** `null`: not known. */
    readonly hardwareRevision?: string | null | undefined;
    readonly blocked?: boolean | undefined;
  },
): Promise<Device> {
  const { channel, hardwareRevision, blocked } = input;
  if (channel !== undefined) requireChannel("channel", channel);
  if (typeof hardwareRevision === "string") requireText("hardwareRevision", hardwareRevision);
  return db.transaction(async (tx) => {
    const { device, product } = await findDevice(tx, input.deviceId, { lock: true });
    const before = { channel: device.channel, hardwareRevision: device.hardwareRevision, blocked: device.blocked };
    const after = {
      channel: channel ?? before.channel,
      hardwareRevision: hardwareRevision === undefined ? before.hardwareRevision : hardwareRevision,
      blocked: blocked ?? before.blocked,
    };
    if (JSON.stringify(after) === JSON.stringify(before)) return toDevice({ device, product });
    await tx.update(devices).set(after).where(eq(devices.id, device.id));
    const subjectId = device.publicId;
    await recordAudit(tx, { actor: input.actor, action: "device.update", subjectId, before, after });
    return toDevice({ device: { ...device, ...after }, product });
  });
}

/** Reads a device. Throws NOT_FOUND. */
export async function getDevice(db: Database, input: { readonly deviceId: string }): Promise<Device> {
  return toDevice(await findDevice(db, input.deviceId));
}

/** Lists devices, newest first: all, a product's, or those of one serial. Throws NOT_FOUND on an unknown product. */
export async function listDevices(
  db: Database,
  input: PageRequest & { readonly product?: string | undefined; readonly serial?: string | undefined },
): Promise<Page<Device>> {
  const window = pageWindow("devices", input);
  if (input.serial !== undefined) requirePattern("serial", input.serial, SERIAL);
  const product = input.product === undefined ? undefined : await findProduct(db, input.product);
  const rows = await db
    .select({ device: devices, product: products.name })
    .from(devices)
    .innerJoin(products, eq(products.id, devices.productId))
    .where(
      and(
        lt(devices.id, window.beforeId),
        product === undefined ? undefined : eq(devices.productId, product.id),
        input.serial === undefined ? undefined : eq(devices.serial, input.serial),
      ),
    )
    .orderBy(desc(devices.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: (row) => row.device.id, toItem: toDevice });
}

/** A device's row and its product's name. Throws NOT_FOUND. With `lock` nobody else changes it until the end. */
async function findDevice(db: Database, deviceId: string, options?: { readonly lock: true }): Promise<DeviceRow> {
  const query = db
    .select({ device: devices, product: products.name })
    .from(devices)
    .innerJoin(products, eq(products.id, devices.productId))
    .where(eq(devices.publicId, deviceId));
  const rows = isPublicId(deviceId) ? await (options?.lock ? query.for("no key update", { of: devices }) : query) : [];
  if (rows[0] === undefined) throw new OtaError("NOT_FOUND", "There is no such device.");
  return rows[0];
}

interface DeviceRow {
  readonly device: typeof devices.$inferSelect;
  readonly product: string;
}

function toDevice({ device, product }: DeviceRow): Device {
  const { publicId: id, serial, channel, hardwareRevision, reportedVersion, confirmedVersion } = device;
  const { blocked, lastSeenAt, createdAt } = device;
  return {
    ...{ id, product, serial, channel, hardwareRevision, reportedVersion, confirmedVersion },
    ...{ blocked, lastSeenAt, createdAt },
  };
}

/** Says which device has the serial: the insert has waited for the other one's commit, so that this sees its row. */
async function serialTaken(
  tx: Database,
  wanted: { readonly product: typeof products.$inferSelect; readonly serial: string },
): Promise<OtaError> {
  const { product, serial } = wanted;
  const [taken] = await tx
    .select({ id: devices.publicId })
    .from(devices)
    .where(and(eq(devices.serial, serial), eq(devices.productId, product.id)));
  return new OtaError("ALREADY_EXISTS", `The product has a device "${serial}" already.`, {
    details: { deviceId: taken?.id, product: product.name, serial },
  });
}
