import semver from "semver";
import { OtaError } from "../errors.ts";
import type { VersionScheme } from "../vocabulary.ts";
import { compareDotted, parseDotted } from "./dotted.ts";

/** A version that has been read by its product's scheme, so that comparing it again costs no parsing. */
export type Version =
  | { readonly scheme: "semver"; readonly canonical: string; readonly semver: semver.SemVer }
  | { readonly scheme: "dotted"; readonly canonical: string; readonly parts: readonly string[] };

/**
 * Reads a version, or returns `undefined` when the text is none in that scheme. White space around it and a leading
 * `v` are ignored in both schemes.
 * - `semver`: Semantic Versioning 2.0.0; numeric parts end at 2^53, and the whole at 256 characters.
 * - `dotted`: one or more numeric parts of any size, 128 characters in all.
 */
export function parseVersion(scheme: VersionScheme, text: string): Version | undefined {
  if (scheme === "semver") {
    const parsed = semver.parse(text);
    // `version` leaves the build metadata out: it has no part in the order, so two builds are one version.
    return parsed === null ? undefined : { scheme, canonical: parsed.version, semver: parsed };
  }
  const parts = parseDotted(text.trim().replace(/^v/, ""));
  return parts === undefined ? undefined : { scheme, canonical: parts.join("."), parts };
}

/** Negative, zero or positive as `a` is older than, the same as or newer than `b`. Both must be of one scheme. */
export function compareParsed(a: Version, b: Version): number {
  if (a.scheme === "semver" && b.scheme === "semver") return a.semver.compare(b.semver);
  if (a.scheme === "dotted" && b.scheme === "dotted") return compareDotted(a.parts, b.parts);
  throw new TypeError(`A ${a.scheme} version cannot be compared with a ${b.scheme} version.`);
}

/**
 * What all spellings of one version have in common, or `undefined` when the text is no version in that scheme. Two
 * texts have the same canonical version exactly when {@link compareVersions} calls them equal.
 */
export function canonicalVersion(scheme: VersionScheme, text: string): string | undefined {
  return parseVersion(scheme, text)?.canonical;
}

/**
 * Negative, zero or positive as version `a` is older than, the same as or newer than `b`.
 *
 * @throws OtaError `INVALID_VERSION` when one of them is no version in that scheme.
 */
export function compareVersions(scheme: VersionScheme, a: string, b: string): number {
  return compareParsed(requireVersion(scheme, a), requireVersion(scheme, b));
}

/**
 * Reads a version that must be one.
 *
 * @throws OtaError `INVALID_VERSION` with what the scheme expects.
 */
export function requireVersion(scheme: VersionScheme, text: string): Version {
  const version = parseVersion(scheme, text);
  if (version !== undefined) return version;
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  throw new OtaError("INVALID_VERSION", `${shown} is no ${scheme} version. Write ${EXPECTED[scheme]}.`, {
    details: { scheme },
  });
}

const EXPECTED = {
  semver: "three numbers and an optional pre-release, such as 1.4.0 or 2.0.0-rc.1",
  dotted: "numbers separated by dots, such as 1.4 or 2024.10.3.1",
} as const satisfies Record<VersionScheme, string>;
