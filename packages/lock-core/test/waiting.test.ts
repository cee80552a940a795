import { LockFactory, MemoryStore } from "@ota/lock-core";
import { describe, expect, it } from "vitest";
import { PlaceOutsideLine } from "../src/place-outside-line.ts";
import { failing, setUp, stranger } from "./support.ts";

/** Lets what is ready go on, without moving the clock. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

// The observed store keeps no line of its own: what is seen here is what every store gets.
describe("waiters of one process", () => {
  it("are served in the order in which they came, and only the first asks the store", async () => {
    const { clock, locks, store } = setUp();
    const lock = locks.createLock("k");
    const lease = await lock.acquire();
    const served: number[] = [];
    const waits = [0, 1, 2, 3, 4].map(async (waiter) => {
      const turn = await lock.acquire();
      served.push(waiter);
      await turn.release();
    });
    await clock.advance(1_000 / 2);
    await lease.extend();
    const asked = store.operations.filter((operation) => operation === "acquire").length;
    await lease.release();
    await Promise.all(waits);
    expect(served).toEqual([0, 1, 2, 3, 4]);
    const turns = store.operations.filter((operation) => operation === "acquire").length - asked;
    expect(turns).toBe(5);
    expect(asked).toBeLessThan(14); // One waiter's polls, not five waiters'.
    expect(clock.pendingTimers).toBe(0);
  });

  it("are one queue across the locks and factories on a store, and several across keys", async () => {
    const { locks, store, clock } = setUp();
    const others = new LockFactory(store, { clock, ttlMs: 1_000 });
    const lease = await locks.createLock("k").acquire();
    const served: string[] = [];
    const waits = [others, locks].map(async (factory, index) => {
      const turn = await factory.createLock("k").acquire();
      served.push(`${index}`);
      await turn.release();
    });
    await (await locks.createLock("other").acquire()).release();
    await lease.release();
    await Promise.all(waits);
    expect(served).toEqual(["0", "1"]);
  });

  it.each([0, 1, 2])("leave the queue by an abort without holding up the rest: waiter %s", async (leaver) => {
    const { locks, clock, store } = setUp();
    const lock = locks.createLock("k");
    const lease = await lock.acquire();
    const controller = new AbortController();
    const served: number[] = [];
    const waits = [0, 1, 2].map(async (waiter) => {
      const signal = waiter === leaver ? controller.signal : undefined;
      const turn = await lock.acquire({ signal });
      served.push(waiter);
      await turn.release();
    });
    const outcomes = Promise.allSettled(waits);
    await clock.advance(10);
    controller.abort(new Error("left"));
    await settle();
    await lease.release();
    expect((await outcomes)[leaver]).toMatchObject({ status: "rejected", reason: { message: "left" } });
    expect(served).toEqual([0, 1, 2].filter((waiter) => waiter !== leaver));
    expect(await store.isHeld(stranger("k"))).toBe(false);
    expect(await lock.tryAcquire()).toBeDefined();
    expect(clock.pendingTimers).toBe(0);
  });

  it("time out each at its own limit, also behind others", async () => {
    const { locks, clock, others } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const lock = locks.createLock("k");
    const ended: string[] = [];
    const waits = [400, 100, 200].map((waitTimeoutMs) =>
      lock.acquire({ waitTimeoutMs }).catch((error: { code: string; waitedMs: number }) => {
        ended.push(`${error.code} ${Math.round(error.waitedMs)}`);
      }),
    );
    await clock.advance(1_000);
    await Promise.all(waits);
    expect(ended).toEqual(["LOCK_TIMEOUT 100", "LOCK_TIMEOUT 200", "LOCK_TIMEOUT 400"]);
  });

  it("use up their attempts behind others as well", async () => {
    const { locks, clock, others } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const lock = locks.createLock("k");
    lock.acquire({ waitTimeoutMs: 30_000 }).catch(() => {});
    const waiting = lock.acquire({ maxAttempts: 3, retryDelayMs: 100 }).catch((error: unknown) => error);
    await clock.advance(200);
    expect(await waiting).toMatchObject({ code: "LOCK_TIMEOUT", attempts: 3 });
  });

  it("may be passed by tryAcquire and by an acquire with a single attempt, which ask at once", async () => {
    const { locks, clock, others, store } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const lock = locks.createLock("k");
    const waiting = lock.acquire();
    await clock.advance(1);
    await others.release(stranger("k"));
    const passing = await lock.acquire({ waitTimeoutMs: 0 });
    expect(passing.status).toBe("held");
    expect(store.operations).toEqual(["acquire", "acquire"]);
    await passing.release();
    await (await waiting).release();
  });

  it("all end by the fault of the store that the first of them meets", async () => {
    const { locks, clock, others, store } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const lock = locks.createLock("k");
    const waits = [1, 2, 3].map(() => lock.acquire().catch((error: { code: string }) => error.code));
    await clock.advance(1);
    store.detour("acquire", { before: failing() });
    await clock.advance(200);
    expect(await Promise.all(waits)).toEqual(Array(3).fill("LOCK_STORE_FAULT"));
  });

  it("enter together as readers, and never pass a writer that came before them", async () => {
    const { clock, state } = setUp();
    const lock = new LockFactory(new MemoryStore({ state }), { clock, ttlMs: 1_000 }).createLock("k");
    const lease = await lock.acquire();
    const entered: string[] = [];
    const leases = (["shared", "shared", "exclusive", "shared"] as const).map(async (mode, index) => {
      const turn = await lock.acquire({ mode });
      entered.push(`${index} ${mode}`);
      return turn;
    });
    await settle();
    await lease.release();
    const readers = await Promise.all(leases.slice(0, 2));
    await clock.advance(300);
    expect(entered).toEqual(["0 shared", "1 shared"]);
    for (const reader of readers) await reader.release();
    await (await leases[2])?.release();
    await (await leases[3])?.release();
    expect(entered).toEqual(["0 shared", "1 shared", "2 exclusive", "3 shared"]);
  });
});

describe("the waiters of one process on a store that keeps no line", () => {
  it.each([
    ["shared", ["turn", "turn", "waits", "turn"]],
    ["process", ["turn", "turn", "turn", "turn"]],
  ] as const)("leave a lock of reach %s to those who poll now and then", async (reach, expected) => {
    let now = 0;
    const { store } = setUp();
    const place = new PlaceOutsideLine(Object.assign(store, { reach }), () => now);
    const became: unknown[] = [];
    for (const at of [0, 999, 1_000, 1_100]) {
      now = at;
      became.push((await place.release(stranger("k"))).next);
    }
    expect(became).toEqual(expected);
  });
});
