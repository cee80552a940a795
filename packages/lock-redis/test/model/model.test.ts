import { hasRedis, startRedis } from "@ota/testkit";
import { describe, expect, it } from "vitest";
import { BROKEN_STORES, type BrokenKind } from "./broken-stores.ts";
import { runModel } from "./run-model.ts";

/** Most of the time the processes wait, so the runs go on at once. The full form is model.soak.ts. */
describe.skipIf(!hasRedis).concurrent("the model run", { timeout: 120_000 }, () => {
  it("finds nothing: whatever processes do, and whenever they die or stop, no two holders believe at once", async () => {
    await using server = await startRedis();
    const size = { processes: 4, actors: 4, operations: 1_200, keys: 3, harmEveryMs: 500 };
    const result = await runModel({ server, seed: 1, ...size });
    expect(result.faults).toEqual([]);
    expect(result.operations).toBeGreaterThanOrEqual(size.operations);
    expect(result.leases).toBeGreaterThan(100);
    expect(result.kills + result.stops).toBeGreaterThan(0);
  });

  it.each(Object.keys(BROKEN_STORES) as BrokenKind[])("finds the mistake of a store: %s", async (broken) => {
    await using server = await startRedis();
    const favours = broken === "renewal that revives" ? "handOver" : undefined; // Elsewhere leases know their own end.
    const size = { processes: 1, actors: 8, operations: 400, keys: 1 };
    const { faults } = await runModel({ server, seed: 1, ...size, broken, favours });
    expect(faults.length).toBeGreaterThan(0);
  });
});
