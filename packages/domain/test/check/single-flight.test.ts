import { describe, expect, it, vi } from "vitest";
import { SingleFlight } from "../../src/check/single-flight.ts";

describe("SingleFlight", () => {
  it("runs once for the first caller and once more for all who come meanwhile", async () => {
    const flights = new SingleFlight<number>();
    let run = 0;
    const work = vi.fn(async () => ++run);
    const results = await Promise.all(Array.from({ length: 100 }, () => flights.run("a", work)));
    expect(results).toEqual([1, ...Array.from({ length: 99 }, () => 2)]);
    expect(work).toHaveBeenCalledTimes(2);
  });

  it("never gives a caller the result of a run that began before it came", async () => {
    const flights = new SingleFlight<number>();
    let now = 0;
    const work = async () => {
      const startedAt = now;
      await Promise.resolve();
      return startedAt;
    };
    const calls: Promise<void>[] = [];
    for (let tick = 0; tick < 50; tick += 1) {
      const calledAt = ++now;
      calls.push(flights.run("a", work).then((startedAt) => expect(startedAt).toBeGreaterThanOrEqual(calledAt)));
      if (tick % 3 === 0) await Promise.resolve();
    }
    await Promise.all(calls);
  });

  it("runs different keys side by side", async () => {
    const flights = new SingleFlight<string>();
    const blocked = Promise.withResolvers<string>();
    const first = flights.run("a", () => blocked.promise);
    await expect(flights.run("b", async () => "b")).resolves.toBe("b");
    blocked.resolve("a");
    await expect(first).resolves.toBe("a");
  });

  it("gives an error to those who share the run, and runs again for the next", async () => {
    const flights = new SingleFlight<string>();
    const failing = flights.run("a", () => Promise.reject(new Error("first")));
    const next = flights.run("a", async () => "second");
    await expect(failing).rejects.toThrow("first");
    await expect(next).resolves.toBe("second");
    await expect(flights.run("a", async () => "third")).resolves.toBe("third");
  });
});
