import { compareParsed, requireVersion, type Version } from "../versions/version.ts";
import type { ConfirmBy, VersionScheme } from "../vocabulary.ts";
import type { CatalogFacts, FirmwareFacts, RolloutFacts } from "./facts.ts";

/** A product's catalog, read and ranked once, so that a check neither parses nor sorts. It never changes. */
export interface Catalog {
  readonly productId: bigint;
  readonly revision: bigint;
  readonly versionScheme: VersionScheme;
  readonly confirmBy: ConfirmBy;
  /** What rollouts offer, best first: by priority, then the newest firmware, then the newest rollout. */
  readonly offers: readonly CatalogOffer[];
  /** Released firmware, newest first. */
  readonly released: readonly CatalogFirmware[];
  readonly firmwareById: ReadonlyMap<bigint, CatalogFirmware>;
  /** By canonical version. */
  readonly firmwareByVersion: ReadonlyMap<string, CatalogFirmware>;
}

export interface CatalogOffer {
  readonly rollout: RolloutFacts;
  readonly firmware: CatalogFirmware;
}

export interface CatalogFirmware extends FirmwareFacts {
  readonly parsedVersion: Version;
  readonly parsedRequirement: Version | undefined;
}

/**
 * Makes a catalog of its facts; their order does not matter. A rollout whose firmware is not among them is left out: it
 * offers a draft.
 *
 * @throws OtaError `INVALID_VERSION` when a stored version is none in the product's scheme.
 */
export function createCatalog(facts: CatalogFacts): Catalog {
  const { productId, revision, versionScheme, confirmBy } = facts;
  const firmware = facts.firmware
    .map((one) => ({
      ...one,
      parsedVersion: requireVersion(versionScheme, one.version),
      parsedRequirement: one.requiresVersion === null ? undefined : requireVersion(versionScheme, one.requiresVersion),
    }))
    .sort((a, b) => compareParsed(b.parsedVersion, a.parsedVersion));
  const firmwareById = new Map(firmware.map((one) => [one.id, one]));
  const firmwareByVersion = new Map(firmware.map((one) => [one.parsedVersion.canonical, one]));
  const offers = facts.rollouts
    .flatMap((rollout) => {
      const offered = firmwareById.get(rollout.firmwareId);
      return offered === undefined ? [] : [{ rollout, firmware: offered }];
    })
    .sort(byRank);
  const released = firmware.filter(({ state }) => state === "released");
  return { productId, revision, versionScheme, confirmBy, offers, released, firmwareById, firmwareByVersion };
}

function byRank(a: CatalogOffer, b: CatalogOffer): number {
  return (
    b.rollout.priority - a.rollout.priority ||
    compareParsed(b.firmware.parsedVersion, a.firmware.parsedVersion) ||
    (a.rollout.id < b.rollout.id ? 1 : -1)
  );
}
