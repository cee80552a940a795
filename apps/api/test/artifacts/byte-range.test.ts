import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decideRange } from "../../src/artifacts/byte-range.ts";

const part = (start: number, end: number) => ({ kind: "part", range: { start, end } });
const whole = { kind: "whole" };
const unsatisfiable = { kind: "unsatisfiable" };

describe("decideRange on 1000 bytes", () => {
  test.each([
    ["the first byte", "bytes=0-0", part(0, 0)],
    ["a middle part", "bytes=10-19", part(10, 19)],
    ["from an offset to the end", "bytes=900-", part(900, 999)],
    ["everything as a range", "bytes=0-", part(0, 999)],
    ["the last byte", "bytes=999-", part(999, 999)],
    ["an end beyond the file is cut to it", "bytes=990-5000", part(990, 999)],
    ["the last ten bytes", "bytes=-10", part(990, 999)],
    ["a suffix longer than the file is the whole as a part", "bytes=-5000", part(0, 999)],
    ["the unit in any case, with spaces", "Bytes = 1 - 2", part(1, 2)],
    ["exactly the end of the file", "bytes=1000-", unsatisfiable],
    ["far beyond the end", "bytes=99999999999999999999999-", unsatisfiable],
    ["a suffix of nothing", "bytes=-0", unsatisfiable],
    ["no header", undefined, whole],
    ["another unit", "lines=1-2", whole],
    ["several ranges", "bytes=0-1,5-6", whole],
    ["an end before the start", "bytes=20-10", whole],
    ["no numbers", "bytes=-", whole],
    ["nonsense", "bytes=a-b", whole],
    ["negative numbers", "bytes=-5-10", whole],
    ["an empty header", "", whole],
  ])("%s: %s", (_what, header, expected) => {
    expect(decideRange(header, 1000)).toEqual(expected);
  });

  test("a part always lies within the file, whatever the header says", () => {
    const number = fc.oneof(
      fc.constant(""),
      fc.bigInt({ min: 0n, max: 10n ** 25n }).map(String),
      fc.nat(20).map(String),
    );
    fc.assert(
      fc.property(number, number, fc.integer({ min: 1, max: 20 }), (first, last, sizeBytes) => {
        const decision = decideRange(`bytes=${first}-${last}`, sizeBytes);
        if (decision.kind !== "part") return;
        const { start, end } = decision.range;
        expect(start).toBeGreaterThanOrEqual(0);
        expect(end).toBeGreaterThanOrEqual(start);
        expect(end).toBeLessThan(sizeBytes);
      }),
    );
  });
});
