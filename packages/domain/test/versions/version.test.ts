import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalVersion, compareVersions } from "../../src/versions/version.ts";
import { VERSION_SCHEMES, type VersionScheme } from "../../src/vocabulary.ts";

const numeral = fc.oneof(
  fc.nat({ max: 30 }).map(String),
  fc.bigInt({ min: 0n, max: 10n ** 30n }).map(String),
  fc.constantFrom("0", "00", "007", "9007199254740993", "9007199254740992"),
);
const dottedText = fc.array(numeral, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("."));
const small = fc.nat({ max: 12 });
const semverText = fc
  .tuple(small, small, small, fc.constantFrom("", "-1", "-rc.1", "-rc.2", "-rc.10", "-alpha", "+b1", "-rc.1+b2"))
  .map(([major, minor, patch, tail]) => `${major}.${minor}.${patch}${tail}`);
const textOf = { semver: semverText, dotted: dottedText } as const;

/** Each from older to newer. */
const CHAINS: readonly { readonly scheme: VersionScheme; readonly chain: readonly string[] }[] = [
  { scheme: "semver", chain: ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0"] },
  { scheme: "semver", chain: ["1.9.0", "1.10.0", "2.0.0"] },
  { scheme: "dotted", chain: ["1.9", "1.10", "1.10.1", "2"] },
  { scheme: "dotted", chain: ["0", "0.1", "1.0.1", "20240131.2", "20240131.10"] },
  { scheme: "dotted", chain: ["1.9007199254740992", "1.9007199254740993", "1.90071992547409920"] },
];

const SAME: readonly (readonly [VersionScheme, string, string])[] = [
  ["semver", "1.2.3", "v1.2.3"],
  ["semver", "1.2.3", " 1.2.3 "],
  ["semver", "1.2.3+build.5", "1.2.3+other"],
  ["dotted", "1.0", "1.0.0"],
  ["dotted", "1", "1.0.0.0"],
  ["dotted", "0", "0.0"],
  ["dotted", "01.007", "1.7"],
  ["dotted", "v2.1", "2.1"],
];

const INVALID: readonly (readonly [VersionScheme, string])[] = [
  ...[
    "",
    "1",
    "1.0",
    "1.2.3.4",
    "01.2.3",
    "1.2.3-",
    "latest",
    "1.2.9007199254740993",
    "1.2.3\u0000",
    "x".repeat(300),
  ].map((text) => ["semver", text] as const),
  ...["", ".", "1.", ".1", "1..2", "1.0-rc1", "-1", "1,0", "١.٢", "1.0\u0000", "1\n2", "1".repeat(129)].map(
    (text) => ["dotted", text] as const,
  ),
];

describe("version order", () => {
  it.each(CHAINS)("$scheme: each of $chain is newer than those before it", ({ scheme, chain }) => {
    chain.forEach((older, index) => {
      for (const newer of chain.slice(index + 1)) {
        expect(compareVersions(scheme, older, newer), `${older} < ${newer}`).toBeLessThan(0);
        expect(compareVersions(scheme, newer, older), `${newer} > ${older}`).toBeGreaterThan(0);
      }
    });
  });

  it.each(VERSION_SCHEMES)("%s: the order is total: antisymmetric and transitive", (scheme) => {
    fc.assert(
      fc.property(textOf[scheme], textOf[scheme], textOf[scheme], (a, b, c) => {
        expect(Math.sign(compareVersions(scheme, a, b))).toBe(-Math.sign(compareVersions(scheme, b, a)) + 0);
        const [first, second, third] = [a, b, c].sort((x, y) => compareVersions(scheme, x, y)) as [
          string,
          string,
          string,
        ];
        expect(compareVersions(scheme, first, second)).toBeLessThanOrEqual(0);
        expect(compareVersions(scheme, first, third)).toBeLessThanOrEqual(0);
      }),
    );
  });

  it("dotted: numbers of any size are ordered as numbers", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 40n }), fc.bigInt({ min: 0n, max: 10n ** 40n }), (a, b) => {
        expect(Math.sign(compareVersions("dotted", `1.${a}`, `1.${b}`))).toBe(a === b ? 0 : a < b ? -1 : 1);
      }),
    );
  });

  it.each(VERSION_SCHEMES)("%s: comparing what is no version is refused with INVALID_VERSION", (scheme) => {
    expect(() => compareVersions(scheme, "1.0.0", "latest")).toThrow(
      expect.objectContaining({ code: "INVALID_VERSION" }),
    );
  });
});

describe("canonicalVersion", () => {
  it.each(SAME)("%s: %j and %j are one version", (scheme, a, b) => {
    expect(canonicalVersion(scheme, a)).toBeDefined();
    expect(canonicalVersion(scheme, a)).toBe(canonicalVersion(scheme, b));
    expect(compareVersions(scheme, a, b)).toBe(0);
  });

  it.each(INVALID)("%s: %j is no version", (scheme, text) => {
    expect(canonicalVersion(scheme, text)).toBeUndefined();
  });

  it.each(VERSION_SCHEMES)(
    "%s: is equal exactly when the order says equal, and its own canonical version",
    (scheme) => {
      fc.assert(
        fc.property(textOf[scheme], textOf[scheme], (a, b) => {
          const [x, y] = [canonicalVersion(scheme, a) as string, canonicalVersion(scheme, b) as string];
          expect(x === y).toBe(compareVersions(scheme, a, b) === 0);
          expect(canonicalVersion(scheme, x)).toBe(x);
        }),
      );
    },
  );

  it.each(VERSION_SCHEMES)("%s: never throws, whatever the text", (scheme) => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void canonicalVersion(scheme, text)));
  });
});
