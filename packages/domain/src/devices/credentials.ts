import { and, eq, gt, isNull, or, type SQL, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { newPublicId } from "../public-id.ts";
import { devices, gatewayTokens } from "../schema/index.ts";
import { requireSerial } from "./device-fields.ts";

/** How a device shows who it is: by a token of its own, or through a gateway, whose token many devices share. */
export interface DeviceCredentials {
  /** The SHA-256 of the token. */
  readonly tokenHash: Uint8Array;
  /** The device that asks through a gateway. Absent: the token is the device's own. */
  readonly serial?: string | undefined;
  /** Which device it says it is, with a token of its own: another device's token is refused. @default any */
  readonly ownSerial?: string | undefined;
}

/**
 * The condition that picks the one device with these credentials: each is looked up by an index, whatever the parameters.
 * A device that has a token of its own is not served by a gateway's. Throws INVALID_FIELD on a serial that none can have.
 */
export function holdsCredentials({ tokenHash, serial, ownSerial }: DeviceCredentials): SQL | undefined {
  const hash = Buffer.from(tokenHash);
  if (serial !== undefined) requireSerial("serial", serial);
  if (serial !== undefined) return isServedByGateway({ tokenHash: hash, serial });
  return and(holdsToken(hash), ownSerial === undefined ? undefined : eq(devices.serial, ownSerial));
}

/** The device whose own token it is; the one before the newest rotation counts until its time is up. */
export function holdsToken(tokenHash: Buffer | SQL): SQL | undefined {
  const previous = and(eq(devices.previousTokenHash, tokenHash), gt(devices.previousTokenValidUntil, sql`now()`));
  return or(eq(devices.tokenHash, tokenHash), previous);
}

/** The device of this serial in the gateway token's product, whatever its channel: an operator may have moved it. */
export function isServedByGateway(given: {
  readonly tokenHash: Buffer | SQL;
  readonly serial: string | SQL;
}): SQL | undefined {
  const product = sql`(
    select ${gatewayTokens.productId} from ${gatewayTokens}
    where ${gatewayTokens.tokenHash} = ${given.tokenHash} and ${gatewayTokens.revokedAt} is null
  )`;
  return and(eq(devices.serial, given.serial), eq(devices.productId, product), isNull(devices.tokenHash));
}

/**
 * Says why nobody has been found with these credentials.
 *
 * @returns the error to throw: `DEVICE_TOKEN_INVALID`, `GATEWAY_TOKEN_INVALID`, `GATEWAY_TOKEN_REFUSED` where the device
 * has a token of its own, and `NOT_FOUND` where the gateway's product has no such device yet.
 */
export async function refusalOf(db: Database, credentials: DeviceCredentials): Promise<OtaError> {
  const { tokenHash, serial } = credentials;
  if (serial === undefined) return deviceTokenInvalid();
  const [found] = await db
    .select({ deviceId: devices.id })
    .from(gatewayTokens)
    .leftJoin(devices, and(eq(devices.productId, gatewayTokens.productId), eq(devices.serial, serial)))
    .where(isLiveGatewayToken(tokenHash));
  if (found === undefined) return gatewayTokenInvalid();
  return found.deviceId === null
    ? new OtaError("NOT_FOUND", "The gateway's product has no such device. Check for updates first: that registers it.")
    : gatewayTokenRefused();
}

/**
 * Registers a serial that asks for the first time through a gateway, in the token's product and channel, as one
 * statement. Of parallel calls one registers it, and all succeed: then the device is there for whoever reads it next.
 *
 * @throws OtaError `GATEWAY_TOKEN_INVALID`; `GATEWAY_TOKEN_REFUSED` where the device has a token of its own.
 */
export async function registerByGateway(
  db: Database,
  { tokenHash, serial }: { readonly tokenHash: Uint8Array; readonly serial: string },
): Promise<void> {
  const gateway = db
    .$with("gateway")
    .as(
      db
        .select({ productId: gatewayTokens.productId, channel: gatewayTokens.channel })
        .from(gatewayTokens)
        .where(isLiveGatewayToken(tokenHash)),
    );
  const registered = db.$with("registered", {}).as(sql`
    insert into devices (public_id, product_id, serial, channel, registered_by)
    select ${newPublicId()}::uuid, product_id, ${serial}::text, channel, 'gateway' from gateway
    on conflict do nothing
  `);
  const [found] = await db
    .with(gateway, registered)
    .select({ hasToken: sql<boolean>`${devices.tokenHash} is not null` })
    .from(gateway)
    .leftJoin(devices, and(eq(devices.productId, gateway.productId), eq(devices.serial, serial)));
  if (found === undefined) throw gatewayTokenInvalid();
  // What this statement has inserted, it does not see: then there is no row, and so no token.
  if (found.hasToken) throw gatewayTokenRefused();
}

export function deviceTokenInvalid(): OtaError {
  return new OtaError(
    "DEVICE_TOKEN_INVALID",
    "The device token is unknown or revoked. Devices send the token that their registration gave, not an operator key. A " +
      "gateway's token goes with the device's serial: natively in OTA-Device-Serial.",
  );
}

function gatewayTokenInvalid(): OtaError {
  return new OtaError(
    "GATEWAY_TOKEN_INVALID",
    "The gateway token is unknown or revoked. A device's own token goes without OTA-Device-Serial.",
  );
}

function gatewayTokenRefused(): OtaError {
  return new OtaError("GATEWAY_TOKEN_REFUSED", "This device has a token of its own: a gateway's is not taken for it.");
}

function isLiveGatewayToken(tokenHash: Uint8Array): SQL | undefined {
  return and(eq(gatewayTokens.tokenHash, Buffer.from(tokenHash)), isNull(gatewayTokens.revokedAt));
}
