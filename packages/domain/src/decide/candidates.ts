import type { NoneReason } from "../vocabulary.ts";
import { attemptRefusal } from "./attempt-limits.ts";
import { bucketOf } from "./bucket.ts";
import type { Catalog, CatalogFirmware, CatalogOffer } from "./catalog.ts";
import type { DeviceFacts, DeviceHistory, RolloutFacts, UpgradeRecord } from "./facts.ts";

/** What one rollout means for one device. */
export interface Candidate {
  readonly rollout: RolloutFacts;
  /** The firmware that the rollout is for. */
  readonly target: CatalogFirmware;
  /** What the device would get: the target itself, or a step on the way to it. */
  readonly firmware: CatalogFirmware;
  /** The record of the device and that firmware, where there is one. */
  readonly record: UpgradeRecord | undefined;
  /** Why the device does not get it now; `undefined`: it may. */
  readonly refusal: NoneReason | undefined;
  /** Whether the offer is open and this device among those it addresses. */
  readonly meant: boolean;
}

/**
 * What a device runs, as its position in the catalog's order of versions. Not knowing is another thing than being told
 * nonsense.
 */
export type RunningVersion = number | "unknown" | "invalid";

/** The reported version where there is one, else the last confirmed install. */
export function runningVersion(device: DeviceFacts, catalog: Catalog): RunningVersion {
  const text = device.reportedVersion ?? device.confirmedVersion;
  return text === null ? "unknown" : (catalog.positionOf(text) ?? "invalid");
}

export interface CandidateInput {
  readonly device: DeviceFacts;
  readonly running: RunningVersion;
  readonly history: DeviceHistory;
  readonly catalog: Catalog;
  readonly now: Date;
  /** The firmware of the device's open attempt, to which the limits on new attempts do not apply. */
  readonly liveFirmwareId: bigint | undefined;
}

/** Every offer of the catalog with what it means for the device, best first. */
export function evaluateCandidates(input: CandidateInput): readonly Candidate[] {
  return input.catalog.offers.map((offer) => evaluate(offer, input));
}

function evaluate(offer: CatalogOffer, input: CandidateInput): Candidate {
  const { rollout, firmware: target } = offer;
  const { device, running } = input;
  const open = isOpen(offer);
  const meant = open && fitsHardware(target, device) && isMember(rollout, device);
  const refused = (refusal: NoneReason): Candidate => {
    return { rollout, target, firmware: target, record: undefined, refusal, meant };
  };

  if (!open) return refused("NO_FIRMWARE");
  const mismatch = mismatchOf(offer, { device, running });
  // A missing step is a lack of firmware, so that it comes before the rollout's own audience.
  const firmware = mismatch === undefined || mismatch === "NOT_IN_ROLLOUT" ? nextStep(target, input) : target;
  if (firmware === undefined) return refused("NO_FIRMWARE");
  if (mismatch !== undefined) return refused(mismatch);

  const record = input.history.records.find(({ firmwareId }) => firmwareId === firmware.id);
  const candidate = { rollout, target, firmware, record, meant };
  if (rollout.state === "paused") return { ...candidate, refusal: "ROLLOUT_PAUSED" };
  if (firmware.id === input.liveFirmwareId) return { ...candidate, refusal: undefined };
  return { ...candidate, refusal: attemptRefusal(record, input.now) };
}

/** Whether the rollout can still offer anything: a paused one can again. */
function isOpen({ rollout, firmware }: CatalogOffer): boolean {
  return firmware.state === "released" && (rollout.state === "running" || rollout.state === "paused");
}

/** Why this device may not run this firmware under that rollout, whatever the time, in the order of precedence. */
export function mismatchOf(
  { rollout, firmware }: CatalogOffer,
  { device, running }: { readonly device: DeviceFacts; readonly running: RunningVersion },
): NoneReason | undefined {
  const order = typeof running === "string" ? 1 : firmware.position - running;
  if (order === 0) return "UP_TO_DATE";
  if (!fitsHardware(firmware, device)) return "HARDWARE_MISMATCH";
  if (running === "invalid") return "UNKNOWN_VERSION";
  if (order < 0 && !rollout.allowDowngrade) return "DOWNGRADE_REFUSED";
  return isMember(rollout, device) ? undefined : "NOT_IN_ROLLOUT";
}

function fitsHardware({ hardwareRevisions }: CatalogFirmware, { hardwareRevision }: DeviceFacts): boolean {
  if (hardwareRevisions.length === 0) return true;
  return hardwareRevision !== null && hardwareRevisions.includes(hardwareRevision);
}

function isMember(rollout: RolloutFacts, device: DeviceFacts): boolean {
  if (rollout.channel !== device.channel) return false;
  const { percentageBasisPoints } = rollout;
  // Everybody is the common case, and spares the hash.
  return percentageBasisPoints >= 10_000 || bucketOf(rollout.id, device.id) < percentageBasisPoints;
}

/**
 * What a device takes next on its way to a firmware: the firmware itself where its requirement is met (or the running
 * version is not known), else the newest released one that meets the requirement and can itself be reached.
 */
function nextStep(target: CatalogFirmware, { device, running, catalog }: CandidateInput): CatalogFirmware | undefined {
  if (typeof running === "string" || running >= (target.requiredPosition ?? running)) return target;
  const deadEnds = new Set<CatalogFirmware>();
  return stepTo(target, running);

  function stepTo(goal: CatalogFirmware, from: number): CatalogFirmware | undefined {
    const { requiredPosition = from } = goal;
    if (from >= requiredPosition) return goal;
    for (const step of catalog.released) {
      if (step.position < requiredPosition) break;
      // Steps go down in version only, so that requirements in a circle end.
      if (deadEnds.has(step) || step.position >= goal.position) continue;
      const next = fitsHardware(step, device) ? stepTo(step, from) : undefined;
      if (next !== undefined) return next;
      deadEnds.add(step);
    }
    return undefined;
  }
}
