import { describe, expect, test } from "vitest";
import { figuresOf, isRight, percentile, table } from "../../src/demo/figures.ts";
import { primeHubImage } from "../../src/demo/firmware-image.ts";
import { readOptions } from "../../src/demo/options.ts";

const device = (id: string) => ({ id, serial: id, token: "secret" });
const answer = (id: string, attemptId: number, kind = "update") => ({
  ...{ device: device(id), kind, attemptId, downloadUrl: undefined, durationMs: attemptId },
});
const record = (deviceId: string, attemptId: number, attemptNumber = 1) => ({ deviceId, attemptId, attemptNumber });

describe("figuresOf", () => {
  const good = {
    outcomes: [answer("a", 1), answer("a", 1), answer("b", 2)],
    devices: 2,
    records: [record("a", 1), record("b", 2)],
  };

  test("one record for each device, and every answer names its attempt: all is right", () => {
    expect(figuresOf(good).filter((figure) => !isRight(figure))).toEqual([]);
  });

  test.each([
    [
      "a record too many",
      { records: [...good.records, record("b", 3)] },
      ["upgrade records", "duplicates", "answers that name another attempt"],
    ],
    ["a record missing", { records: good.records.slice(1) }, ["upgrade records", "answers that name another attempt"]],
    ["an attempt opened twice", { records: [record("a", 1, 2), record("b", 2)] }, ["duplicates"]],
    [
      "an answer with another attempt",
      { outcomes: [...good.outcomes, answer("a", 9)] },
      ["answers that name another attempt"],
    ],
    [
      "a busy answer",
      { outcomes: [...good.outcomes, answer("a", 1, "SERVICE_BUSY")] },
      ["answered: update", "answered: SERVICE_BUSY"],
    ],
    [
      "any other answer",
      { outcomes: [...good.outcomes, answer("a", 1, "HTTP 500")] },
      ["answered: update", "answered: HTTP 500"],
    ],
  ])("%s is seen", (_what, change, wrong) => {
    const figures = figuresOf({ ...good, ...change });
    expect(figures.filter((figure) => !isRight(figure)).map(({ name }) => name)).toEqual(wrong);
    expect(table(figures)).toContain("WRONG");
  });

  test("percentiles are values that occurred", () => {
    const values = Array.from({ length: 200 }, (_, index) => index + 1);
    expect([percentile(values, 50), percentile(values, 99), percentile([7], 50), percentile([], 50)]).toEqual([
      100, 198, 7, 0,
    ]);
  });
});

describe("readOptions", () => {
  test("fifty devices and twenty checks unless told otherwise", () => {
    expect(readOptions([])).toEqual({ devices: 50, checks: 20 });
    expect(readOptions(["--", "--devices", "3", "--checks=4"])).toEqual({ devices: 3, checks: 4 });
  });

  test.each([
    ["--devices", "0"],
    ["--devices", "1001"],
    ["--devices", "x"],
    ["--checks", "201"],
    ["--checks", "1.5"],
    ["--nonsense"],
  ])("refuses %s %s with exit code 2", (...args) => {
    expect(readOptions(args)).toMatchObject({ exitCode: 2 });
  });

  test("--help is no error", () => {
    expect(readOptions(["--help"])).toMatchObject({ exitCode: 0, print: expect.stringContaining("--devices N") });
  });
});

describe("primeHubImage", () => {
  test("is a real image: a zip of some hundred kilobytes with a version newer than what the devices run", () => {
    const image = primeHubImage();
    expect(image.bytes.subarray(0, 2).toString("latin1")).toBe("PK");
    expect(image.bytes.length).toBeGreaterThan(100_000);
    expect(image.version).toMatch(/^[4-9]\.\d+\.\d+/);
    expect(image.origin).toContain("MIT");
  });
});
