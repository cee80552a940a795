import { describe, expect, it, vi } from "vitest";
import { Gathering } from "../../src/check/gathering.ts";

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("Gathering", () => {
  it("loads together what is asked for in one turn of the event loop, each key once", async () => {
    const load = vi.fn(async (keys: readonly number[]) => keys.map((key) => key * 10));
    const gathering = new Gathering(load);
    const answers = await Promise.all([3, 1, 3, 2].map((key) => gathering.get(String(key), key)));
    expect(answers).toEqual([30, 10, 30, 20]);
    expect(load.mock.calls).toEqual([[[3, 1, 2]]]);
  });

  it("never gives a key what was loaded before it was asked for", async () => {
    let now = 0;
    const gathering = new Gathering<null, number>(async ([...keys]) => {
      const startedAt = now;
      await nextTurn();
      return keys.map(() => startedAt);
    });
    const calls: Promise<void>[] = [];
    for (let turn = 0; turn < 50; turn += 1) {
      const calledAt = ++now;
      calls.push(gathering.get("a", null).then((loadedAt) => expect(loadedAt).toBeGreaterThanOrEqual(calledAt)));
      if (turn % 3 === 0) await nextTurn();
      if (turn % 7 === 0) await Promise.resolve();
    }
    await Promise.all(calls);
  });

  it("does not wait for one load to begin the next", async () => {
    const held = Promise.withResolvers<readonly string[]>();
    const load = vi.fn(async (keys: readonly string[]) => (keys.includes("slow") ? held.promise : keys));
    const gathering = new Gathering(load);
    const slow = gathering.get("slow", "slow");
    await nextTurn();
    await expect(gathering.get("fast", "fast")).resolves.toBe("fast");
    held.resolve(["slow"]);
    await expect(slow).resolves.toBe("slow");
  });

  it("divides a crowd into loads of 32", async () => {
    const sizes: number[] = [];
    const gathering = new Gathering<number, number>(async (keys) => {
      sizes.push(keys.length);
      return keys;
    });
    const keys = Array.from({ length: 70 }, (_, key) => key);
    expect(await Promise.all(keys.map((key) => gathering.get(String(key), key)))).toEqual(keys);
    expect(sizes).toEqual([32, 32, 6]);
  });

  it("loads what is to be kept apart by itself, and answers it by itself", async () => {
    const held = Promise.withResolvers<void>();
    const load = vi.fn(async (keys: readonly string[]) => {
      if (keys[0]?.startsWith("slow")) await held.promise;
      return keys;
    });
    const gathering = new Gathering(load, { apart: (key: string) => key.split(" ")[0] });
    const get = (key: string) => gathering.get(key, key);
    const slow = Promise.all(["slow 1", "slow 2"].map(get));
    expect(await Promise.all(["fast 1", "fast 2"].map(get))).toEqual(["fast 1", "fast 2"]);
    held.resolve();
    await slow;
    expect(load.mock.calls).toEqual([[["slow 1", "slow 2"]], [["fast 1", "fast 2"]]]);
  });

  it("gives an error to those of that load alone", async () => {
    const load = vi.fn(async (keys: readonly string[]) => keys).mockRejectedValueOnce(new Error("gone"));
    const gathering = new Gathering(load);
    const lost = await Promise.allSettled(["a", "b"].map((key) => gathering.get(key, key)));
    expect(lost.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(gathering.get("a", "a")).resolves.toBe("a");
  });
});
