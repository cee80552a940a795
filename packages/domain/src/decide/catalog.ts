import { compareParsed, parseVersion, requireVersion, type Version } from "../versions/version.ts";
import type { ConfirmBy, VersionScheme } from "../vocabulary.ts";
import { type AttributeCondition, readAttributeFilter } from "./attribute-filter.ts";
import type { CatalogFacts, FirmwareFacts, RolloutFacts } from "./facts.ts";
import type { MaintenanceWindow } from "./window.ts";

/**
 * A product's catalog, read and ranked once, so that a check neither parses nor sorts: versions are compared by their
 * position in the order of this catalog. It never changes.
 */
export interface Catalog {
  readonly productId: bigint;
  readonly revision: bigint;
  readonly versionScheme: VersionScheme;
  readonly confirmBy: ConfirmBy;
  readonly timeZone: string;
  readonly maxAttempts: number;
  readonly backoffSeconds: number;
  /** What rollouts offer, best first: by priority, then the newest firmware, then the newest rollout. */
  readonly offers: readonly CatalogOffer[];
  /**
   * Those of them that can offer anything, now or again: a check looks at these alone, so that it costs the same however
   * many rollouts are over.
   */
  readonly openOffers: readonly CatalogOffer[];
  /** Released firmware, newest first. */
  readonly released: readonly CatalogFirmware[];
  readonly firmwareById: ReadonlyMap<bigint, CatalogFirmware>;
  /** Where a version stands among the catalog's, or `undefined` for what is no version in the product's scheme. */
  positionOf(version: string): number | undefined;
}

export interface CatalogOffer {
  readonly rollout: RolloutFacts;
  /** The rollout's filter and window, read once; `undefined`: it has none. */
  readonly condition: AttributeCondition | undefined;
  readonly window: MaintenanceWindow | undefined;
  readonly firmware: CatalogFirmware;
}

export interface CatalogFirmware extends FirmwareFacts {
  /** Greater for newer versions, and equal for equal ones only. */
  readonly position: number;
  /** The position that a device must have reached; `undefined`: any. */
  readonly requiredPosition: number | undefined;
}

/**
 * Makes a catalog of its facts; their order does not matter. A rollout whose firmware is not among them is left out: it
 * offers a draft.
 *
 * @throws OtaError `INVALID_VERSION` when a stored version is none in the product's scheme, `INVALID_FIELD` when a stored
 * filter is none.
 */
export function createCatalog(facts: CatalogFacts): Catalog {
  const { firmware: _firmware, rollouts: _rollouts, ...product } = facts;
  const { versionScheme } = product;
  const read = facts.firmware.map((one) => ({
    facts: one,
    version: requireVersion(versionScheme, one.version),
    required: one.requiresVersion === null ? undefined : requireVersion(versionScheme, one.requiresVersion),
  }));
  // Whatever a device's version is compared with has a place of its own, the required versions too.
  const versions = read
    .flatMap(({ version, required }) => (required === undefined ? [version] : [version, required]))
    .sort(compareParsed)
    .filter((version, index, all) => index === 0 || compareParsed(all[index - 1] as Version, version) !== 0);
  const firmware = read
    .map(({ facts: one, version, required }): CatalogFirmware => {
      const requiredPosition = required === undefined ? undefined : positionIn(versions, required);
      return { ...one, position: positionIn(versions, version), requiredPosition };
    })
    .sort((a, b) => b.position - a.position);
  const firmwareById = new Map(firmware.map((one) => [one.id, one]));
  const offers = facts.rollouts
    .flatMap((rollout) => {
      const offered = firmwareById.get(rollout.firmwareId);
      return offered === undefined ? [] : [offerOf(rollout, offered)];
    })
    .sort(byRank);
  const openOffers = offers.filter(isOpen);
  const released = firmware.filter(({ state }) => state === "released");
  const positionOf = remembered((text) => {
    const version = parseVersion(versionScheme, text);
    return version === undefined ? undefined : positionIn(versions, version);
  });
  return { ...product, offers, openOffers, released, firmwareById, positionOf };
}

function offerOf(rollout: RolloutFacts, firmware: CatalogFirmware): CatalogOffer {
  const { attributeFilter, windowDays: days, windowFromMinute: fromMinute, windowToMinute: toMinute } = rollout;
  const condition = attributeFilter === null ? undefined : readAttributeFilter(attributeFilter);
  const window = days === null || fromMinute === null || toMinute === null ? undefined : { days, fromMinute, toMinute };
  return { rollout, condition, window, firmware };
}

/** Whether the rollout can still offer anything: a paused one can again. */
export function isOpen({ rollout, firmware }: CatalogOffer): boolean {
  return firmware.state === "released" && (rollout.state === "running" || rollout.state === "paused");
}

function byRank(a: CatalogOffer, b: CatalogOffer): number {
  return (
    b.rollout.priority - a.rollout.priority ||
    b.firmware.position - a.firmware.position ||
    (a.rollout.id < b.rollout.id ? 1 : -1)
  );
}

/** Twice the index for a version of the list, which is sorted; an odd number in between for any other. */
function positionIn(sorted: readonly Version[], version: Version): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compareParsed(sorted[middle] as Version, version);
    if (order === 0) return 2 * middle;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return 2 * low - 1;
}

/** A fleet reports few different versions; devices that invent them must not fill the memory. */
const MAX_REMEMBERED = 1_000;

function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const value = known.get(text);
    if (value !== undefined) return value;
    const computed = compute(text);
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(text, computed);
    return computed;
  };
}
