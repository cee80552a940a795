import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AttributeFilter, MAX_FILTER_NODES, readAttributeFilter } from "../../src/decide/attribute-filter.ts";
import { OtaError } from "../../src/errors.ts";

const DEVICE = { region: "eu", ram: 512, beta: true, bootloader: "2.4.1", nightly: "3.0.0-rc.1", empty: "" };

describe("an attribute filter", () => {
  it.each<[unknown, boolean]>([
    [{ attribute: "region", eq: "eu" }, true],
    [{ attribute: "region", eq: "EU" }, false],
    [{ attribute: "ram", eq: 512 }, true],
    [{ attribute: "ram", eq: "512" }, false],
    [{ attribute: "beta", eq: true }, true],
    [{ attribute: "empty", eq: "" }, true],
    [{ attribute: "missing", eq: "" }, false],
    [{ attribute: "region", in: ["us", "eu"] }, true],
    [{ attribute: "missing", in: ["us", "eu"] }, false],
    [{ attribute: "region", exists: true }, true],
    [{ attribute: "missing", exists: true }, false],
    [{ attribute: "missing", exists: false }, true],
    [{ attribute: "constructor", exists: true }, false],
    [{ attribute: "toString", in: ["x"] }, false],
    [{ attribute: "bootloader", semver: ">=2.4 <3" }, true],
    [{ attribute: "bootloader", semver: "^3" }, false],
    [{ attribute: "nightly", semver: ">=2" }, true],
    [{ attribute: "nightly", semver: ">=2 <3" }, false],
    [{ attribute: "region", semver: "*" }, false],
    [{ attribute: "ram", semver: "*" }, false],
    [{ attribute: "missing", semver: "*" }, false],
    [{ not: { attribute: "missing", exists: true } }, true],
    [
      {
        all: [
          { attribute: "beta", eq: true },
          { attribute: "ram", eq: 512 },
        ],
      },
      true,
    ],
    [
      {
        all: [
          { attribute: "beta", eq: true },
          { attribute: "ram", eq: 1 },
        ],
      },
      false,
    ],
    [
      {
        any: [
          { attribute: "beta", eq: false },
          { attribute: "ram", eq: 512 },
        ],
      },
      true,
    ],
    [{ any: [{ attribute: "beta", eq: false }] }, false],
  ])("%j is %s", (filter, met) => {
    expect(readAttributeFilter(filter)(DEVICE)).toBe(met);
  });

  it.each<[string, unknown]>([
    ["attributeFilter", null],
    ["attributeFilter", []],
    ["attributeFilter", "region = eu"],
    ["attributeFilter", {}],
    ["attributeFilter", { attribute: "a" }],
    ["attributeFilter", { attribute: "a", eq: 1, in: [1] }],
    ["attributeFilter", { attribute: "a", equals: 1 }],
    ["attributeFilter.attribute", { eq: 1 }],
    ["attributeFilter.attribute", { attribute: "", eq: 1 }],
    ["attributeFilter.attribute", { attribute: "a\0", eq: 1 }],
    ["attributeFilter.attribute", { attribute: "a", all: [{ attribute: "a", eq: 1 }] }],
    ["attributeFilter.all", { all: [] }],
    ["attributeFilter.all", { all: { attribute: "a", eq: 1 } }],
    ["attributeFilter.any[1]", { any: [{ attribute: "a", eq: 1 }, 7] }],
    ["attributeFilter.not.all[0].eq", { not: { all: [{ attribute: "a", eq: null }] } }],
    ["attributeFilter.eq", { attribute: "a", eq: Number.NaN }],
    ["attributeFilter.eq", { attribute: "a", eq: "x".repeat(257) }],
    ["attributeFilter.in", { attribute: "a", in: [] }],
    ["attributeFilter.in", { attribute: "a", in: Array.from({ length: 101 }, (_, index) => index) }],
    ["attributeFilter.in[1]", { attribute: "a", in: [1, {}] }],
    ["attributeFilter.exists", { attribute: "a", exists: "yes" }],
    ["attributeFilter.semver", { attribute: "a", semver: 2 }],
    ["attributeFilter.semver", { attribute: "a", semver: ">=banana" }],
    ["attributeFilter.semver", { attribute: "a", semver: `>=1${" ".repeat(200)}` }],
  ])("names the node %s of %j", (field, filter) => {
    expect(fieldOf(filter)).toBe(field);
  });

  it("takes 32 nodes, and names the first one beyond", () => {
    const leaf = { attribute: "a", eq: 1 };
    const leaves = (count: number) => ({ all: Array.from({ length: count }, () => leaf) });
    expect(fieldOf(leaves(MAX_FILTER_NODES - 1))).toBeUndefined();
    expect(fieldOf(leaves(MAX_FILTER_NODES))).toBe("attributeFilter.all[31]");
  });

  it("ends on one that is nested without end", () => {
    let filter: unknown = { attribute: "a", eq: 1 };
    for (let depth = 0; depth < 100_000; depth += 1) filter = { not: filter };
    expect(fieldOf(filter)).toBe(`attributeFilter${".not".repeat(32)}`);
  });

  it("of anything at all is read, or is refused by INVALID_FIELD", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fieldOf(value);
        fieldOf({ all: [value] });
        fieldOf({ attribute: "a", in: value });
        fieldOf({ attribute: "a", semver: value });
      }),
    );
  });

  it("keeps to the rules of logic", () => {
    const leaf = fc.constantFrom<AttributeFilter>(
      ...[
        { attribute: "region", eq: "eu" },
        { attribute: "missing", exists: true },
        { attribute: "ram", in: [1] },
      ],
    );
    const { filter } = fc.letrec<{ filter: AttributeFilter }>((tie) => ({
      filter: fc.oneof(
        { maxDepth: 3, depthSize: "small" },
        leaf,
        tie("filter").map((not) => ({ not })),
        fc.array(tie("filter"), { minLength: 1, maxLength: 2 }).map((all) => ({ all })),
        fc.array(tie("filter"), { minLength: 1, maxLength: 2 }).map((any) => ({ any })),
      ),
    }));
    const met = (one: AttributeFilter) => readAttributeFilter(one)(DEVICE);
    fc.assert(
      fc.property(filter, filter, (a, b) => {
        expect(met({ not: { not: a } })).toBe(met(a));
        expect(met({ not: { all: [a, b] } })).toBe(met({ any: [{ not: a }, { not: b }] }));
      }),
      { numRuns: 300 },
    );
  });
});

/** The field that is refused; `undefined`: none is. */
function fieldOf(filter: unknown): unknown {
  try {
    readAttributeFilter(filter);
    return undefined;
  } catch (error) {
    if (error instanceof OtaError && error.code === "INVALID_FIELD") return error.details?.["field"];
    throw error;
  }
}
