import { hasRedis, startRedis } from "@ota/testkit";
import { describe, expect, it } from "vitest";
import { runModel } from "./run-model.ts";

describe.skipIf(!hasRedis)("the model run in full", () => {
  it("finds nothing in 100,000 operations of 4 processes", { timeout: 3_600_000 }, async () => {
    await using server = await startRedis();
    const size = { processes: 4, actors: 8, operations: 100_000, keys: 6, harmEveryMs: 1_000 };
    const startedAt = performance.now();
    const result = await runModel({ server, seed: Date.now() % 1_000_000, ...size, onProgress: console.log });
    const { faults, ...figures } = result;
    console.log(JSON.stringify({ ...figures, seconds: Math.round((performance.now() - startedAt) / 1000) }, null, 2));
    expect(faults.slice(0, 20)).toEqual([]);
    expect(result.operations).toBeGreaterThanOrEqual(size.operations);
  });
});
