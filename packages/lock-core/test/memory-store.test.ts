import { type LockMode, MemoryState, MemoryStore } from "@ota/lock-core";
import { ManualClock } from "@ota/lock-core/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GrantList } from "./grant-list.ts";

describe("MemoryStore", () => {
  test("gives each store a state of its own unless one is shared", async () => {
    const request = { key: "k", owner: "a", ttlMs: 1_000 };
    const alone = new MemoryStore();
    await alone.acquire(request);
    expect(await new MemoryStore().isHeld(request)).toBe(false);
    const state = new MemoryState();
    await new MemoryStore({ state }).acquire(request);
    expect(await new MemoryStore({ state }).isHeld(request)).toBe(true);
  });

  test("lets lapsed leases not pile up while new ones are granted", async () => {
    const clock = new ManualClock();
    const state = new MemoryState({ clock });
    const store = new MemoryStore({ state });
    for (let second = 0; second < 50; second++) {
      for (let nth = 0; nth < 100; nth++) {
        await store.acquire({ key: `${second}:${nth}`, owner: "a", ttlMs: 1_000 });
      }
      await clock.advance(500);
      expect(state.size).toBeLessThanOrEqual(600);
    }
  });

  test("keeps what is live, however much lapses around it", async () => {
    const clock = new ManualClock();
    const state = new MemoryState({ clock });
    const store = new MemoryStore({ state });
    await store.acquire({ key: "long", owner: "a", ttlMs: 1_000_000 });
    for (let nth = 0; nth < 1_000; nth++) {
      await store.acquire({ key: `${nth}`, owner: "a", ttlMs: 1 });
      await clock.advance(1);
    }
    expect(await store.isHeld({ key: "long", owner: "a" })).toBe(true);
    expect(state.size).toBeLessThanOrEqual(5);
  });

  test("answers any sequence of operations on any clock as a list of grants would", async () => {
    const key = fc.constantFrom("a", "b", "");
    const owner = fc.constantFrom("one", "two", "three");
    const ttlMs = fc.integer({ min: 1, max: 20 });
    const mode = fc.constantFrom<LockMode>("exclusive", "shared");
    const step = fc.oneof(
      fc.record({ do: fc.constant("acquire" as const), key, owner, ttlMs, mode }),
      fc.record({ do: fc.constantFrom("extend" as const, "promote" as const, "demote" as const), key, owner, ttlMs }),
      fc.record({ do: fc.constantFrom("release" as const, "isHeld" as const), key, owner }),
      fc.record({ do: fc.constantFrom("inspect" as const, "forceRelease" as const), key }),
      fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 15 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const model = new GrantList();
        const state = new MemoryState({ clock: { now: () => model.now } });
        const stores = [new MemoryStore({ state }), new MemoryStore({ state })] as const;
        for (const [index, next] of steps.entries()) {
          const store = stores[index % 2 === 0 ? 0 : 1];
          if (next.do === "pass") model.now += next.ms;
          else if (next.do === "acquire") expect(await store.acquire(next)).toEqual(model.acquire(next));
          else if (next.do === "extend") expect(await store.extend(next)).toBe(model.extend(next));
          else if (next.do === "promote") expect(await store.promote(next)).toEqual(model.promote(next));
          else if (next.do === "demote") expect(await store.demote(next)).toBe(model.demote(next));
          else if (next.do === "release") expect(await store.release(next)).toBe(model.release(next));
          else if (next.do === "isHeld") expect(await store.isHeld(next)).toBe(model.isHeld(next));
          else if (next.do === "inspect") expect(await store.inspect(next)).toEqual(model.inspect(next));
          else expect(await store.forceRelease(next)).toBe(model.forceRelease(next));
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("mints fencing tokens above all earlier ones, whatever becomes of the keys and of the time of day", async () => {
    const state = new MemoryState();
    const store = new MemoryStore({ state });
    const RealDate = globalThis.Date;
    let last = 0n;
    try {
      for (const timeOfDay of [RealDate.now(), RealDate.now() - 3_600_000, 0, RealDate.now() + 3_600_000, 0]) {
        globalThis.Date = class extends RealDate {
          static override now = () => timeOfDay;
        } as DateConstructor;
        for (const key of ["a", "b", "a"]) {
          const result = await store.acquire({ key, owner: `${last}`, ttlMs: 60_000, fencing: true });
          const token = "fencingToken" in result ? (result.fencingToken ?? 0n) : 0n;
          expect(token).toBeGreaterThan(last);
          last = token;
          await store.forceRelease({ key });
        }
      }
    } finally {
      globalThis.Date = RealDate;
    }
    expect(state.size).toBe(0);
    expect(last).toBeLessThan(2n ** 63n);
  });
});
