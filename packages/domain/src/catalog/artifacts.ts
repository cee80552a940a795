import { type AnyColumn, and, desc, eq, type SQL, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { type DeviceCredentials, holdsCredentials, refusalOf } from "../devices/credentials.ts";
import { OtaError } from "../errors.ts";
import { invalidField, requireInteger, requirePattern, requireText } from "../fields.ts";
import { isPublicId } from "../public-id.ts";
import { attemptEvents, devices, firmware, upgradeAttempts, upgrades } from "../schema/index.ts";
import type { AttemptState, FirmwareState } from "../vocabulary.ts";

/** The facts of an immutable file, as they were measured while it was received. */
export interface ArtifactFacts {
  readonly sizeBytes: number;
  /** Lower-case hex, as are the two below, which some device clients need; `null`: not known of a file elsewhere. */
  readonly sha256: string;
  readonly sha1: string | null;
  readonly md5: string | null;
  /** What devices are told as the file's name; never a path. */
  readonly fileName: string;
  readonly contentType: string;
}

/** Which file belongs to a firmware. */
export interface Artifact extends ArtifactFacts {
  /** The firmware's public id. */
  readonly firmwareId: string;
  readonly uploadedAt: Date;
  /** Where it lies on another host; `null`: it is stored here. */
  readonly sourceUrl: string | null;
}

/**
 * The artifact of a released firmware, for whoever shows that it may have it, such as by a signed URL. With `finishing` it
 * is given of a withdrawn one too: its device has it already and is installing it.
 * Throws NOT_FOUND where there is no such firmware or it is a draft, and ARTIFACT_WITHDRAWN.
 */
export async function findArtifact(
  db: Database,
  input: {
    readonly firmwareId: string;
    /** @default false */
    readonly finishing?: boolean | undefined;
  },
): Promise<Artifact> {
  if (!isPublicId(input.firmwareId)) throw notFound();
  const [row] = await db.select().from(firmware).where(eq(firmware.publicId, input.firmwareId));
  if (row === undefined || row.state === "draft") throw notFound();
  if (row.state === "withdrawn" && input.finishing !== true) throw withdrawn();
  return toArtifact(row);
}

/**
 * The artifact of a firmware that was offered to the device: its newest attempt is for that firmware and was not taken
 * back. A withdrawn firmware is still given to a device that has it and is installing it, and to no other. One
 * statement, which writes nothing: devices send many range requests.
 * Throws ARTIFACT_WITHDRAWN on what the device was ever offered and is withdrawn, so that it does not ask for ever;
 * CONFIRMATION_REQUIRED where it was asked for its consent and has not given it; DEVICE_TOKEN_INVALID, GATEWAY_TOKEN_INVALID,
 * GATEWAY_TOKEN_REFUSED; or NOT_FOUND for all else, whether the firmware exists or not.
 */
export async function findArtifactForDevice(
  db: Database,
  input: DeviceCredentials & {
    readonly firmwareId: string;
    /**
     * Whether it is given before the device has consented: DDI names the file in the question itself.
     * @default false
     */
    readonly beforeConsent?: boolean;
  },
): Promise<Artifact> {
  const { firmwareId, beforeConsent = false, ...credentials } = input;
  const newestAttempt = db
    .select({ id: upgradeAttempts.id, firmwareId: upgradeAttempts.firmwareId, state: upgradeAttempts.state })
    .from(upgrades)
    .innerJoin(upgradeAttempts, eq(upgradeAttempts.upgradeId, upgrades.id))
    .where(eq(upgrades.deviceId, devices.id))
    .orderBy(desc(upgradeAttempts.id))
    .limit(1)
    .as("newest_attempt");
  const newest = {
    ...{ firmwareId: newestAttempt.firmwareId, state: newestAttempt.state },
    unconfirmed: isUnconfirmed(newestAttempt),
  };
  const wanted = isPublicId(firmwareId) ? firmwareId : null;
  const [row] = await db
    .select({ blocked: devices.blocked, upgradeId: upgrades.id, newest, firmware })
    .from(devices)
    .leftJoin(firmware, eq(firmware.publicId, sql`${wanted}::uuid`))
    .leftJoin(upgrades, and(eq(upgrades.deviceId, devices.id), eq(upgrades.firmwareId, firmware.id)))
    .leftJoinLateral(newestAttempt, sql`true`)
    .where(holdsCredentials(credentials));
  if (row === undefined) throw await refusalOf(db, credentials);
  const { blocked, upgradeId, firmware: found } = row;
  if (found === null || upgradeId === null || blocked) throw notFound();
  const attemptState = row.newest?.firmwareId === found.id ? row.newest.state : undefined;
  if (isGiven(found.state, attemptState)) {
    if (row.newest?.unconfirmed && !beforeConsent) throw confirmationRequired();
    return toArtifact(found);
  }
  throw found.state === "withdrawn" ? withdrawn() : notFound();
}

/** Whether a device gets a firmware's file, by the state of its newest attempt where that is for this firmware. */
export function isGiven(firmware: FirmwareState, newest: AttemptState | undefined): boolean {
  if (newest === undefined) return false;
  if (firmware === "withdrawn") return isPastDownload(newest);
  // One that failed or ran out of time may go on with its download: the device will be offered the same again.
  return newest !== "cancelled" && newest !== "superseded";
}

/** Whether the device was asked for its consent and has not given it: it is open so, or has ended so. */
function isUnconfirmed({ id, state }: { readonly id: AnyColumn; readonly state: AnyColumn }): SQL<boolean> {
  return sql<boolean>`case
    when ${state} in ('failed', 'timed_out') then exists (
      select from ${attemptEvents}
      where ${attemptEvents.attemptId} = ${id} and ${attemptEvents.fromState} = 'awaiting_confirmation'
        and ${attemptEvents.toState} = ${state}
    )
    else ${state} = 'awaiting_confirmation'
  end`;
}

/** Whether a device in this state has the whole file: it may finish even if the firmware is withdrawn. */
export function isPastDownload(state: AttemptState): boolean {
  return PAST_THE_DOWNLOAD.has(state);
}

/** Refuses facts that no file can have. */
export function requireArtifactFacts(facts: ArtifactFacts): void {
  requireInteger("artifact.sizeBytes", facts.sizeBytes, { least: 1, most: Number.MAX_SAFE_INTEGER });
  requireHash("artifact.sha256", facts.sha256, 64);
  if (facts.sha1 !== null) requireHash("artifact.sha1", facts.sha1, 40);
  if (facts.md5 !== null) requireHash("artifact.md5", facts.md5, 32);
  const { fileName, contentType } = facts;
  requireText("artifact.fileName", fileName, { maxLength: 255 });
  if (/[/\\]/.test(fileName) || fileName === "." || fileName === "..") {
    invalidField("artifact.fileName", "the name of a file, without a path");
  }
  requirePattern("artifact.contentType", contentType, {
    pattern: /^(?=.{3,127}$)[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+$/,
    expected: "a media type without parameters, such as application/octet-stream",
  });
}

function requireHash(field: string, value: string, digits: number): void {
  requirePattern(field, value, {
    pattern: new RegExp(`^[0-9a-f]{${digits}}$`),
    expected: `${digits} lower-case hex digits`,
  });
}

/** Installers that stream read the file once more while they install it. */
const PAST_THE_DOWNLOAD: ReadonlySet<AttemptState> = new Set(["downloaded", "installing", "installed"]);

function toArtifact(row: typeof firmware.$inferSelect): Artifact {
  const { publicId: firmwareId, sizeBytes, sha256, sha1, md5, fileName, contentType, sourceUrl, createdAt } = row;
  return { firmwareId, sizeBytes, sha256, sha1, md5, fileName, contentType, sourceUrl, uploadedAt: createdAt };
}

function notFound(): OtaError {
  return new OtaError("NOT_FOUND", "There is no such artifact for this device.");
}

function confirmationRequired(): OtaError {
  return new OtaError(
    "CONFIRMATION_REQUIRED",
    "This firmware needs the consent of the device. Report `confirmed` for the attempt that a check answers, then fetch it.",
  );
}

function withdrawn(): OtaError {
  return new OtaError("ARTIFACT_WITHDRAWN", "This firmware has been withdrawn. Stop the download, and check again.");
}
