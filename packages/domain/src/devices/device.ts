import { eq } from "drizzle-orm";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { isPublicId } from "../public-id.ts";
import type { DeviceAttributes } from "../schema/devices.ts";
import { devices, products } from "../schema/index.ts";
import type { DeviceOrigin } from "../vocabulary.ts";

/** One installation, known by its serial within its product. */
export interface Device {
  /** Its public id. */
  readonly id: string;
  /** The product's name. */
  readonly product: string;
  readonly serial: string;
  readonly channel: string;
  readonly hardwareRevision: string | null;
  /** Each once, in alphabetical order. */
  readonly groups: readonly string[];
  readonly attributes: DeviceAttributes;
  /** Where its maintenance windows are: an IANA name; `null`: the product's. */
  readonly timeZone: string | null;
  /** What the device said last that it runs. */
  readonly reportedVersion: string | null;
  /** The last install that was confirmed; used only while the device reports no version. */
  readonly confirmedVersion: string | null;
  /** A blocked device is offered nothing and may fetch nothing. */
  readonly blocked: boolean;
  readonly blockedReason: string | null;
  readonly registeredBy: DeviceOrigin;
  /** Whether it has a token of its own; one that has none asks through a gateway. */
  readonly hasToken: boolean;
  /** Until when the token before the newest rotation works as well; `null`: there is none. */
  readonly previousTokenValidUntil: Date | null;
  /** Up to ten seconds late, since it is written in batches. */
  readonly lastSeenAt: Date | null;
  readonly createdAt: Date;
}

/** A device with its new token, which is shown this once and cannot be read again. */
export interface DeviceWithToken {
  readonly device: Device;
  readonly token: string;
}

/** A device's row with its product's name. */
export interface DeviceRow {
  readonly device: typeof devices.$inferSelect;
  readonly product: string;
}

/** Reads a device. Throws NOT_FOUND. */
export async function getDevice(db: Database, input: { readonly deviceId: string }): Promise<Device> {
  return toDevice(await findDevice(db, input.deviceId));
}

/**
 * A device's row and its product's name. Throws NOT_FOUND. With `lock` nobody else changes it until the end; `delete` also
 * keeps out whoever would refer to it.
 */
export async function findDevice(
  db: Database,
  deviceId: string,
  options?: { readonly lock: "change" | "delete" },
): Promise<DeviceRow> {
  const query = selectDevices(db).where(eq(devices.publicId, deviceId));
  const lock = options?.lock === "delete" ? "update" : "no key update";
  const rows = isPublicId(deviceId) ? await (options ? query.for(lock, { of: devices }) : query) : [];
  if (rows[0] === undefined) throw new OtaError("NOT_FOUND", "There is no such device.");
  return rows[0];
}

/** Devices with their products' names. */
export function selectDevices(db: Database) {
  return db
    .select({ device: devices, product: products.name })
    .from(devices)
    .innerJoin(products, eq(products.id, devices.productId))
    .$dynamic();
}

export function toDevice({ device, product }: DeviceRow): Device {
  const { publicId: id, serial, channel, hardwareRevision, reportedVersion, confirmedVersion } = device;
  const { attributes, timeZone, blocked, blockedReason, registeredBy, lastSeenAt, createdAt } = device;
  return {
    ...{ id, product, serial, channel, hardwareRevision, groups: device.groups.toSorted(), attributes, timeZone },
    ...{ reportedVersion, confirmedVersion, blocked, blockedReason, registeredBy },
    hasToken: device.tokenHash !== null,
    previousTokenValidUntil: device.previousTokenValidUntil,
    ...{ lastSeenAt, createdAt },
  };
}
