import { eq, sql } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireInteger, requireOneOf } from "../fields.ts";
import { devices } from "../schema/index.ts";
import { hashToken, newToken } from "../tokens.ts";
import { type Device, type DeviceRow, type DeviceWithToken, findDevice, toDevice } from "./device.ts";

/** A day: devices that ask every few hours come by, and are told the new token by whatever means. */
const DEFAULT_OVERLAP_SECONDS = 86_400;
const MAX_OVERLAP_SECONDS = 90 * 86_400;

/** Which of a device's tokens are revoked. */
export const REVOCABLE_TOKENS = ["previous", "newest", "all"] as const;
export type RevocableTokens = (typeof REVOCABLE_TOKENS)[number];

/**
 * Gives a device a new token. The old one works as well for `overlapSeconds` by the database's clock, so that the device
 * can be told the new one meanwhile; with 0 it is refused from the commit on, as are all others.
 * Throws NOT_FOUND, INVALID_FIELD, or INVALID_STATE where two tokens work already and a third would leave open which one
 * the device has: then one has to be revoked first.
 */
export async function rotateDeviceToken(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly deviceId: string;
    /** 0 to 7 776 000 (90 days). @default 86_400 */
    readonly overlapSeconds?: number | undefined;
  },
): Promise<DeviceWithToken> {
  const { overlapSeconds = DEFAULT_OVERLAP_SECONDS } = input;
  requireInteger("overlapSeconds", overlapSeconds, { least: 0, most: MAX_OVERLAP_SECONDS });
  const token = newToken();
  const device = await changeTokens(
    db,
    { ...input, action: "device.rotate_token", overlapSeconds },
    ({ row, overlaps }) => {
      if (overlapSeconds > 0 && overlaps) throw twoTokens(row);
      const keepsOld = overlapSeconds > 0 && row.tokenHash !== null;
      return {
        tokenHash: hashToken(token),
        previousTokenHash: keepsOld ? row.tokenHash : null,
        previousTokenValidUntil: keepsOld ? sql`now() + make_interval(secs => ${overlapSeconds}::integer)` : null,
      };
    },
  );
  return { device, token };
}

/**
 * Revokes tokens of a device from the commit on:
 * - `previous`: the one before the newest rotation, whose overlap ends by it;
 * - `newest`: the newest one, where the device was never told it; the previous one is its token again, for good;
 * - `all`: the device has none then. It asks through a gateway, or not at all until it is given a new one.
 *
 * Throws NOT_FOUND, INVALID_FIELD, or INVALID_STATE where there is no previous token that still works.
 */
export async function revokeDeviceTokens(
  db: Database,
  input: { readonly actor: Actor; readonly deviceId: string; readonly which: RevocableTokens },
): Promise<Device> {
  const { which } = input;
  requireOneOf("which", which, REVOCABLE_TOKENS);
  return changeTokens(db, { ...input, action: "device.revoke_tokens" }, ({ row, overlaps }) => {
    const none = { previousTokenHash: null, previousTokenValidUntil: null };
    if (which === "all") return row.tokenHash === null ? undefined : { tokenHash: null, ...none };
    if (!overlaps) throw new OtaError("INVALID_STATE", "The device has no previous token that still works.");
    return which === "previous" ? none : { tokenHash: row.previousTokenHash, ...none };
  });
}

type TokenColumns = Partial<
  Pick<typeof devices.$inferInsert, "tokenHash" | "previousTokenHash"> & { previousTokenValidUntil: unknown }
>;

/** Changes a device's tokens under its lock; `undefined` changes nothing. No hash goes into the audit log. */
async function changeTokens(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly deviceId: string;
    readonly action: "device.rotate_token" | "device.revoke_tokens";
    readonly which?: RevocableTokens;
    readonly overlapSeconds?: number;
  },
  change: (found: {
    readonly row: DeviceRow["device"];
    /** Whether the previous token still works. */
    readonly overlaps: boolean;
  }) => TokenColumns | undefined,
): Promise<Device> {
  const { actor, deviceId, action, which, overlapSeconds } = input;
  return db.transaction(async (tx) => {
    const { device: row, product } = await findDevice(tx, deviceId, { lock: "change" });
    const [clock] = await tx
      .select({ overlaps: sql<boolean>`coalesce(${devices.previousTokenValidUntil} > now(), false)` })
      .from(devices)
      .where(eq(devices.id, row.id));
    const columns = change({ row, overlaps: clock?.overlaps ?? false });
    if (columns === undefined) return toDevice({ device: row, product });
    const [written] = await tx
      .update(devices)
      .set(columns as Partial<typeof devices.$inferInsert>)
      .where(eq(devices.id, row.id))
      .returning();
    const device = written ?? row;
    await recordAudit(tx, {
      ...{ actor, action, subjectId: row.publicId, before: tokenFacts(row) },
      after: {
        ...tokenFacts(device),
        ...(which === undefined ? {} : { revoked: which }),
        ...(overlapSeconds === undefined ? {} : { overlapSeconds }),
      },
    });
    return toDevice({ device, product });
  });
}

function tokenFacts({ serial, tokenHash, previousTokenValidUntil }: DeviceRow["device"]) {
  return {
    serial,
    hasToken: tokenHash !== null,
    previousTokenValidUntil: previousTokenValidUntil?.toISOString() ?? null,
  };
}

function twoTokens({ previousTokenValidUntil }: DeviceRow["device"]): OtaError {
  const until = previousTokenValidUntil?.toISOString() ?? "";
  return new OtaError(
    "INVALID_STATE",
    `The device has two tokens that work, the older one until ${until}. Revoke the one that it does not use, or rotate without an overlap.`,
    { details: { previousTokenValidUntil: until } },
  );
}
