import { MemoryState, MemoryStore } from "@ota/lock-core";
import { ManualClock } from "@ota/lock-core/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

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
    const step = fc.oneof(
      fc.record({ do: fc.constant("acquire" as const), key, owner, ttlMs }),
      fc.record({ do: fc.constant("extend" as const), key, owner, ttlMs }),
      fc.record({ do: fc.constant("release" as const), key, owner }),
      fc.record({ do: fc.constant("isHeld" as const), key, owner }),
      fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 15 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        let now = 0;
        const state = new MemoryState({ clock: { now: () => now } });
        const stores = [new MemoryStore({ state }), new MemoryStore({ state })] as const;
        const model = new GrantList();
        for (const [index, next] of steps.entries()) {
          const store = stores[index % 2 === 0 ? 0 : 1];
          if (next.do === "pass") now += next.ms;
          else if (next.do === "acquire") expect((await store.acquire(next)).outcome).toBe(model.acquire(next, now));
          else if (next.do === "extend") expect(await store.extend(next)).toBe(model.extend(next, now));
          else if (next.do === "release") expect(await store.release(next)).toBe(model.release(next, now));
          else expect(await store.isHeld(next)).toBe(model.isHeld(next, now));
        }
      }),
      { numRuns: 500 },
    );
  });
});

interface Request {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs?: number;
}

/** The model: every grant ever made, of which the last one of a key counts. Nothing is ever removed. */
class GrantList {
  readonly #grants: { key: string; owner: string; until: number }[] = [];

  acquire(request: Request, now: number): string {
    const holder = this.#holder(request.key, now);
    if (holder !== undefined && holder !== request.owner) return "contended";
    this.#note(request, now);
    return "granted";
  }

  extend(request: Request, now: number): string {
    if (!this.isHeld(request, now)) return "lost";
    this.#note(request, now);
    return "extended";
  }

  release(request: Request, now: number): string {
    if (!this.isHeld(request, now)) return "not-held";
    this.#note({ ...request, ttlMs: 0 }, now);
    return "released";
  }

  isHeld({ key, owner }: Request, now: number): boolean {
    return this.#holder(key, now) === owner;
  }

  #holder(key: string, now: number): string | undefined {
    const last = this.#grants.filter((grant) => grant.key === key).at(-1);
    return last !== undefined && now < last.until ? last.owner : undefined;
  }

  #note({ key, owner, ttlMs = 0 }: Request, now: number): void {
    this.#grants.push({ key, owner, until: now + ttlMs });
  }
}
