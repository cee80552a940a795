import { and, eq } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import { findProduct } from "../catalog/products.ts";
import { DEFAULT_CHANNEL } from "../catalog/release.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireChannel, requireText } from "../fields.ts";
import { newPublicId } from "../public-id.ts";
import type { DeviceAttributes } from "../schema/devices.ts";
import { devices, type products } from "../schema/index.ts";
import { hashToken, newToken } from "../tokens.ts";
import { type DeviceWithToken, toDevice } from "./device.ts";
import { requireAttributes, requireGroups, requireSerial, requireTimeZone } from "./device-fields.ts";

/** What an operator says of a new device. */
export interface NewDevice {
  /** `[A-Za-z0-9._:~-]{1,256}`: it goes into paths, logs and file names as it is. */
  readonly serial: string;
  /** @default "stable" */
  readonly channel?: string | undefined;
  /** @default not known */
  readonly hardwareRevision?: string | undefined;
  /** @default none */
  readonly groups?: readonly string[] | undefined;
  /** @default none */
  readonly attributes?: DeviceAttributes | undefined;
  /** An IANA name. @default the product's */
  readonly timeZone?: string | undefined;
}

/**
 * Registers a device and makes its token. Of parallel calls with one serial exactly one succeeds.
 * Throws NOT_FOUND where there is no such product, INVALID_FIELD, or ALREADY_EXISTS where the product has the serial:
 * whoever has lost the token rotates it.
 */
export async function registerDevice(
  db: Database,
  input: NewDevice & { readonly actor: Actor; readonly product: string },
): Promise<DeviceWithToken> {
  const { actor } = input;
  requireNewDevice(input);
  const facts = factsOf(input);
  const token = newToken();
  return db.transaction(async (tx) => {
    const product = await findProduct(tx, input.product);
    const [row] = await tx
      .insert(devices)
      .values({ publicId: newPublicId(), productId: product.id, ...facts, tokenHash: hashToken(token) })
      .onConflictDoNothing()
      .returning();
    if (row === undefined) throw await serialTaken(tx, { product, serial: facts.serial });
    const after = { product: product.name, ...facts };
    await recordAudit(tx, { actor, action: "device.register", subjectId: row.publicId, after });
    return { device: toDevice({ device: row, product: product.name }), token };
  });
}

/** Refuses what cannot be registered. */
export function requireNewDevice(device: NewDevice): void {
  const { serial, channel, hardwareRevision, groups, attributes, timeZone } = device;
  requireSerial("serial", serial);
  if (channel !== undefined) requireChannel("channel", channel);
  if (hardwareRevision !== undefined) requireText("hardwareRevision", hardwareRevision);
  if (groups !== undefined) requireGroups("groups", groups);
  if (attributes !== undefined) requireAttributes("attributes", attributes);
  if (timeZone !== undefined) requireTimeZone("timeZone", timeZone);
}

function factsOf({ serial, channel, hardwareRevision, groups, attributes, timeZone }: NewDevice) {
  return {
    serial,
    channel: channel ?? DEFAULT_CHANNEL,
    hardwareRevision: hardwareRevision ?? null,
    groups: [...(groups ?? [])],
    attributes: attributes ?? {},
    timeZone: timeZone ?? null,
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
