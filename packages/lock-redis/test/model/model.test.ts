import { hasRedis, startRedis } from "@ota/testkit";
import { describe, expect, it } from "vitest";
import { BROKEN_STORES, type BrokenKind } from "./broken-stores.ts";
import { runModel } from "./run-model.ts";

/** Most of the time the processes wait, so the runs go on at once. The full form is model.soak.ts. */
describe.skipIf(!hasRedis).concurrent("the model run", { timeout: 300_000 }, () => {
  it("finds nothing: whatever processes do, and whenever they die or stop, no two holders believe at once", async () => {
    await using server = await startRedis();
    const size = { processes: 4, actors: 4, operations: 800, keys: 3, harmEveryMs: 1_000 };
    const result = await runModel({ server, seed: 1, ...size });
    expect(result.faults).toEqual([]);
    expect(result.operations).toBeGreaterThanOrEqual(size.operations);
    expect(result.leases).toBeGreaterThan(100);
    expect(result.kills + result.stops).toBeGreaterThan(0);
  });

  it.each(Object.keys(BROKEN_STORES) as BrokenKind[])("finds the mistake of a store: %s", async (broken) => {
    await using server = await startRedis();
    const favours = broken === "renewal that revives" ? "handOver" : undefined; // Elsewhere leases know their own end.
    // Leases that last a while, so that they meet on a busy machine too, where one run may still be lucky.
    const size = { processes: 1, actors: 8, operations: 250, keys: 1, ttlMs: { from: 60, to: 300 } };
    const found: string[] = [];
    for (let seed = 1; found.length === 0 && seed <= 8; seed++) {
      found.push(...(await runModel({ server, seed, ...size, broken, favours })).faults);
      await server.cli("FLUSHALL");
    }
    expect(found.length).toBeGreaterThan(0);
  });
});
