import { and, desc, eq, isNotNull } from "drizzle-orm";
import { type ArtifactFacts, isGiven } from "../catalog/artifacts.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { attemptEvents, devices, firmware, products, rollouts, upgradeAttempts, upgrades } from "../schema/index.ts";
import { type AttemptState, LIVE_ATTEMPT_STATES } from "../vocabulary.ts";
import { type DeviceCredentials, holdsCredentials, refusalOf } from "./credentials.ts";

/** One attempt as its own device sees it. */
export interface DeviceAttempt {
  readonly id: number;
  readonly state: AttemptState;
  /** Whether the new version has to be seen, and the product has named the attribute by which it is told. */
  readonly tellsVersion: boolean;
  /** Whether its rollout asks for consent. */
  readonly requiresConfirmation: boolean;
  readonly product: string;
  readonly firmware: ArtifactFacts & { readonly id: string; readonly version: string };
  /** Whether the device is given the firmware's file now. */
  readonly fetchable: boolean;
}

/** Ids are positive int32; any other number is nobody's, and PostgreSQL would refuse it. */
const MAX_ATTEMPT_ID = 2 ** 31 - 1;

/**
 * Reads an attempt of the device, open or closed, as one statement that writes nothing.
 *
 * @throws OtaError `NOT_FOUND` for an attempt that is not the device's; `DEVICE_TOKEN_INVALID`, `GATEWAY_TOKEN_INVALID`,
 * `GATEWAY_TOKEN_REFUSED`.
 */
export async function findAttemptForDevice(
  db: Database,
  { attemptId, ...credentials }: DeviceCredentials & { readonly attemptId: number },
): Promise<DeviceAttempt> {
  const newest = db
    .select({ id: upgradeAttempts.id })
    .from(upgrades)
    .innerJoin(upgradeAttempts, eq(upgradeAttempts.upgradeId, upgrades.id))
    .where(eq(upgrades.deviceId, devices.id))
    .orderBy(desc(upgradeAttempts.id))
    .limit(1);
  const possible = Number.isInteger(attemptId) && attemptId > 0 && attemptId <= MAX_ATTEMPT_ID;
  const [found] = await db
    .select({
      ...{ blocked: devices.blocked, isNewest: eq(upgradeAttempts.id, newest).mapWith(Boolean) },
      attempt: { id: upgradeAttempts.id, state: upgradeAttempts.state },
      ...{ firmware, requiresConfirmation: rollouts.requiresConfirmation, product: products },
    })
    .from(devices)
    .innerJoin(upgradeAttempts, eq(upgradeAttempts.deviceId, devices.id))
    .innerJoin(rollouts, eq(rollouts.id, upgradeAttempts.rolloutId))
    .innerJoin(firmware, eq(firmware.id, upgradeAttempts.firmwareId))
    .innerJoin(products, eq(products.id, devices.productId))
    .where(and(holdsCredentials(credentials), eq(upgradeAttempts.id, possible ? attemptId : 0)));
  if (found === undefined) {
    await requireDevice(db, credentials);
    throw new OtaError("NOT_FOUND", "This device has no such attempt.");
  }
  const { attempt, requiresConfirmation, product, blocked, isNewest } = found;
  const { publicId: id, version, sizeBytes, sha256, sha1, md5, fileName, contentType } = found.firmware;
  const { state } = attempt;
  const tellsVersion = product.confirmBy === "version" && product.versionAttribute !== null;
  return {
    ...attempt,
    ...{ requiresConfirmation, product: product.name, tellsVersion },
    firmware: { id, version, sizeBytes, sha256, sha1, md5, fileName, contentType },
    fetchable: !blocked && isGiven(found.firmware.state, isNewest ? state : undefined),
  };
}

/** Whether an attempt is open. */
export function isOpen(state: AttemptState): boolean {
  return LIVE_ATTEMPT_STATES.some((live) => live === state);
}

/**
 * Says nothing where there is a device with these credentials.
 *
 * @throws OtaError `DEVICE_TOKEN_INVALID`, `GATEWAY_TOKEN_INVALID`, `GATEWAY_TOKEN_REFUSED`; `NOT_FOUND` for a serial that
 * no check through the gateway has registered yet.
 */
export async function requireDevice(db: Database, credentials: DeviceCredentials): Promise<void> {
  const [device] = await db.select({ id: devices.id }).from(devices).where(holdsCredentials(credentials));
  if (device === undefined) throw await refusalOf(db, credentials);
}

/**
 * What the device has said about an attempt in words, the newest first, each line by itself. The attempt must have been
 * found to be the device's.
 */
export async function attemptMessages(
  db: Database,
  { attemptId, limit }: { readonly attemptId: number; readonly limit: number },
): Promise<readonly string[]> {
  const events = await db
    .select({ message: attemptEvents.message, details: attemptEvents.details })
    .from(attemptEvents)
    .where(and(eq(attemptEvents.attemptId, attemptId), isNotNull(attemptEvents.reportedState)))
    .orderBy(desc(attemptEvents.seq))
    .limit(limit);
  const lines = events.flatMap(({ message, details }) => {
    // A final report's message is one of its lines.
    const own = message === null || details.includes(message) ? [] : [message];
    return [...own, ...details.toReversed()];
  });
  return lines.slice(0, limit);
}
