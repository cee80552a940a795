import type { Exclusion, NoneReason } from "../vocabulary.ts";
import { type AttemptLimits, attemptRefusal } from "./attempt-limits.ts";
import { bucketOf } from "./bucket.ts";
import { type Catalog, type CatalogFirmware, type CatalogOffer, isOpen } from "./catalog.ts";
import type { DeviceFacts, DeviceHistory, RolloutFacts, RolloutPlaces, UpgradeRecord } from "./facts.ts";
import { type Opening, windowAt } from "./window.ts";

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
  /** When a refusal by the hour ends by itself: that of its window, or of a pause between attempts. */
  readonly opening: Opening | undefined;
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
  /** The places of rollouts that count them, by the rollout. */
  readonly places: ReadonlyMap<bigint, RolloutPlaces>;
  /** The firmware of the device's open attempt, to which the limits on new attempts do not apply. */
  readonly liveFirmwareId: bigint | undefined;
}

/** Offers of the catalog, in their order, with what each means for the device. */
export function evaluateCandidates(offers: readonly CatalogOffer[], input: CandidateInput): readonly Candidate[] {
  return offers.map((offer, rank) => evaluate(offer, { ...input, above: () => offers.slice(0, rank) }));
}

function evaluate(
  offer: CatalogOffer,
  input: CandidateInput & {
    /** What ranks higher. */
    readonly above: () => readonly CatalogOffer[];
  },
): Candidate {
  const { rollout, firmware: target } = offer;
  const { device, running } = input;
  const open = isOpen(offer);
  const meant = open && isForHardware(offer, device) && isMember(offer, device);
  const refused = (refusal: NoneReason): Candidate => {
    return { rollout, target, firmware: target, record: undefined, refusal, opening: undefined, meant };
  };

  if (!open) return refused("NO_FIRMWARE");
  const mismatch = mismatchOf(offer, { device, running });
  // A missing step is a lack of firmware, so that it comes before the rollout's own audience.
  const firmware = mismatch === undefined || mismatch === "NOT_IN_ROLLOUT" ? nextStep(target, input) : target;
  if (firmware === undefined) return refused("NO_FIRMWARE");
  if (mismatch !== undefined) return refused(mismatch);
  if (input.above().some((higher) => wouldTakeBack(higher, { device, running, target }))) return refused("OUTRANKED");

  const record = input.history.records.find(({ firmwareId }) => firmwareId === firmware.id);
  const candidate = { rollout, target, firmware, record, refusal: undefined, opening: undefined, meant };
  if (rollout.state === "paused") return { ...candidate, refusal: "ROLLOUT_PAUSED" };
  const opening = closedWindow(offer, input);
  if (opening !== undefined) return { ...candidate, refusal: "WINDOW_CLOSED", opening };
  // An open attempt has its place, and has been counted.
  if (firmware.id === input.liveFirmwareId) return candidate;
  const full = placeRefusal(rollout, input);
  if (full !== undefined) return { ...candidate, refusal: full };
  const limits = limitsOf(rollout, input.catalog);
  const again = attemptRefusal(record, { limits, now: input.now, isOpen: (id) => isOpenRollout(input.catalog, id) });
  if (again?.reason !== "BACKOFF") return { ...candidate, refusal: again?.reason };
  return { ...candidate, refusal: again.reason, opening: { opensAt: again.endsAt, closesAt: undefined } };
}

/** When the rollout's window opens, by the device's clock; `undefined`: it is open, or there is none. */
export function closedWindow(
  { window }: CatalogOffer,
  { device, catalog, now }: Pick<CandidateInput, "device" | "catalog" | "now">,
): Opening | undefined {
  if (window === undefined) return undefined;
  const opening = windowAt(window, { now, timeZone: device.timeZone ?? catalog.timeZone });
  return opening === "open" ? undefined : opening;
}

/** Why the rollout has no place for another attempt of this device. */
function placeRefusal(rollout: RolloutFacts, { history, places }: CandidateInput): NoneReason | undefined {
  const taken = places.get(rollout.id);
  if (taken === undefined) return undefined;
  if (taken.thresholdReached) return "ROLLOUT_PAUSED";
  const { maxConcurrent, maxTotal } = rollout;
  const newcomers = isNewcomer(rollout, history) ? 1 : 0;
  const full =
    (maxConcurrent !== null && taken.live >= maxConcurrent) ||
    (maxTotal !== null && newcomers > 0 && taken.granted >= maxTotal);
  return full ? "CAP_REACHED" : undefined;
}

/** Whether the device has had no attempt in the rollout so far: only then another one counts towards `maxTotal`. */
export function isNewcomer({ id }: RolloutFacts, { records }: DeviceHistory): boolean {
  return !records.some(({ attempts }) => attempts.some(({ rolloutId }) => rolloutId === id));
}

/** Of the catalog's offers only the open ones are looked through: they are few, however many are over. */
function isOpenRollout({ openOffers }: Catalog, id: bigint): boolean {
  return openOffers.some((offer) => offer.rollout.id === id && isOpen(offer));
}

function limitsOf({ maxAttempts, backoffSeconds }: RolloutFacts, catalog: Catalog): AttemptLimits {
  return {
    maxAttempts: maxAttempts ?? catalog.maxAttempts,
    backoffSeconds: backoffSeconds ?? catalog.backoffSeconds,
  };
}

/** Why this device may not run this firmware under that rollout, whatever the time, in the order of precedence. */
export function mismatchOf(
  offer: CatalogOffer,
  { device, running }: { readonly device: DeviceFacts; readonly running: RunningVersion },
): NoneReason | undefined {
  const { rollout, firmware } = offer;
  const order = typeof running === "string" ? 1 : firmware.position - running;
  if (order === 0) return "UP_TO_DATE";
  if (!isForHardware(offer, device)) return "HARDWARE_MISMATCH";
  if (running === "invalid") return "UNKNOWN_VERSION";
  if (order < 0 && !rollout.allowDowngrade) return "DOWNGRADE_REFUSED";
  return isMember(offer, device) ? undefined : "NOT_IN_ROLLOUT";
}

/**
 * Whether a running rollout that ranks higher is content with what the device runs, and would not be with the target: it
 * would offer its own firmware again, and the device would go to and fro. As every install pleases one more rollout without
 * displeasing one that ranks higher, a device always comes to rest.
 */
function wouldTakeBack(
  higher: CatalogOffer,
  context: { readonly device: DeviceFacts; readonly running: RunningVersion; readonly target: CatalogFirmware },
): boolean {
  const { device, running, target } = context;
  if (typeof running === "string" || higher.rollout.state !== "running" || !isOpen(higher)) return false;
  if (!isContent(higher, running) || isContent(higher, target.position)) return false;
  return isForHardware(higher, device) && isMember(higher, device);
}

/** Whether an offer leaves a device alone that runs the version at a position: its own, or a newer one that may stay. */
function isContent({ rollout, firmware }: CatalogOffer, position: number): boolean {
  return position === firmware.position || (position > firmware.position && !rollout.allowDowngrade);
}

function isForHardware({ rollout, firmware }: CatalogOffer, device: DeviceFacts): boolean {
  return fitsHardware(firmware, device) && fitsHardware(rollout, device);
}

function fitsHardware(
  { hardwareRevisions }: CatalogFirmware | RolloutFacts,
  { hardwareRevision }: DeviceFacts,
): boolean {
  if (hardwareRevisions.length === 0) return true;
  return hardwareRevision !== null && hardwareRevisions.includes(hardwareRevision);
}

function isMember(offer: CatalogOffer, device: DeviceFacts): boolean {
  return exclusionOf(offer, device) === undefined;
}

/** By which of its terms the rollout does not address the device, whatever it runs on: the first one. */
export function exclusionOf({ rollout, condition }: CatalogOffer, device: DeviceFacts): Exclusion | undefined {
  const { channel, groups, percentageBasisPoints } = rollout;
  if (channel !== device.channel) return "channel";
  if (groups.length > 0 && !groups.some((group) => device.groups.includes(group))) return "groups";
  if (condition !== undefined && !condition(device.attributes)) return "attributeFilter";
  // Everybody is the common case, and spares the hash.
  if (percentageBasisPoints >= 10_000 || device.allowedBy.includes(rollout.id)) return undefined;
  return bucketOf(rollout.id, device.id) < percentageBasisPoints ? undefined : "percentage";
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
