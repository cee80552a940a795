import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CombinedStore, LockFactory, MemoryState, MemoryStore } from "@ota/lock-core";
import { ManualClock } from "@ota/lock-core/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deferred, failing, ObservedStore, setUp, stranger } from "./support.ts";

/** A lease of 900 ms that extends itself, in a world of its own. */
async function setUpLease(options: { readonly maxHoldMs?: number; readonly ttlMs?: number } = {}) {
  const { maxHoldMs, ttlMs = 900 } = options;
  const world = setUp({ ttlMs });
  const lease = await world.locks.createLock("k").tryAcquire({ autoExtend: true, maxHoldMs });
  if (lease === undefined) throw new Error("the key is free");
  world.store.requests.length = 0;
  return { ...world, lease };
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

const unhandled: unknown[] = [];
const note = (error: unknown) => unhandled.push(error);
beforeEach(() => void process.on("unhandledRejection", note));
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", note);
  expect(unhandled.splice(0)).toEqual([]);
});

describe("a lease that extends itself", () => {
  test("is held for as long as it is needed, asking once in a third of its TTL", async () => {
    const { lease, clock, store } = await setUpLease();
    await clock.advance(90_000);
    expect(lease.status).toBe("held");
    expect(new Set(store.operations)).toEqual(new Set(["extend"]));
    expect(store.requests.length).toBeLessThanOrEqual(300);
    expect(store.requests).toContainEqual(expect.objectContaining({ ttlMs: 900 }));
    await lease.release();
  });

  test("is first extended when a third of its TTL is over", async () => {
    const { lease, clock, store } = await setUpLease();
    await clock.advance(299);
    expect(store.operations).toEqual([]);
    await clock.advance(1);
    expect(store.operations).toEqual(["extend"]);
    expect(lease.remainingMs()).toBe(900);
  });

  test("is not extended without the option", async () => {
    const { locks, clock, store } = setUp();
    const lease = await locks.createLock("k").tryAcquire();
    await clock.advance(1_000);
    expect([lease?.status, store.operations]).toEqual(["lost", ["acquire"]]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("takes the option from the factory and the lock, which the call may turn off", async () => {
    const { locks, clock } = setUp({ autoExtend: true });
    const other = locks.createLock("other", { autoExtend: false });
    const [kept, lapsed, off] = await Promise.all([
      locks.createLock("k").tryAcquire(),
      other.tryAcquire(),
      locks.createLock("off").tryAcquire({ autoExtend: false }),
    ]);
    await clock.advance(5_000);
    expect([kept?.status, lapsed?.status, off?.status]).toEqual(["held", "lost", "lost"]);
  });

  test("asks the less often the more time an extend of the holder's own gives it", async () => {
    const { lease, clock, store } = await setUpLease();
    expect(await lease.extend(60_000)).toBe("extended");
    await clock.advance(59_300);
    expect(store.operations).toEqual(["extend"]);
    await clock.advance(700);
    expect(lease.status).toBe("held");
  });

  test("lives on after an extend of the holder's own that shortens it", async () => {
    const { lease, clock } = await setUpLease();
    expect(await lease.extend(50)).toBe("extended");
    await clock.advance(1_000);
    expect(lease.status).toBe("held");
  });
});

describe("faults while a lease extends itself", () => {
  test("are retried while time remains, and logged", async () => {
    const { lease, clock, store, warnings } = await setUpLease();
    for (let times = 0; times < 3; times++) store.detour("extend", { before: failing() });
    await clock.advance(899);
    expect(lease.status).toBe("held");
    expect(store.requests.length).toBeGreaterThanOrEqual(4);
    expect(warnings()).toHaveLength(3);
  });

  test("end with the lease, without a flood of requests", async () => {
    const { lease, clock, store } = await setUpLease();
    for (let times = 0; times < 1_000; times++) store.detour("extend", { before: failing() });
    await clock.advance(900);
    expect(lease.status).toBe("lost");
    const asked = store.requests.length;
    expect(asked).toBeGreaterThan(3);
    expect(asked).toBeLessThan(40);
    await clock.advance(10_000);
    expect(store.requests).toHaveLength(asked);
    expect(clock.pendingTimers).toBe(0);
  });

  test("are no unhandled rejection when the logger throws as well", async () => {
    const { locks, clock, store } = setUp({
      logger: { debug() {}, info() {}, warn: () => fail(), error() {} },
      ttlMs: 900,
    });
    const lease = await locks.createLock("k").tryAcquire({ autoExtend: true });
    store.detour("extend", { before: failing() });
    await clock.advance(1_000);
    expect(lease?.status).toBe("held");
  });
});

describe("the end of a lease that extends itself", () => {
  test("comes at once when the store no longer knows it: nothing more is sent", async () => {
    const { lease, clock, store, others } = await setUpLease();
    await others.forceRelease({ key: "k" });
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    await clock.advance(300);
    expect(lease.status).toBe("lost");
    await clock.advance(5_000);
    expect(store.operations).toEqual(["extend"]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("comes with maxHoldMs at the latest, whatever extends it", async () => {
    const { lease, clock, store, others } = await setUpLease({ maxHoldMs: 2_000 });
    await clock.advance(1_500);
    expect(await lease.extend(60_000)).toBe("extended");
    expect(lease.remainingMs()).toBe(500);
    const asked = store.requests.length;
    await clock.advance(499);
    expect(lease.status).toBe("held");
    await clock.advance(1);
    expect(() => lease.assertHeld()).toThrow(/as long as maxHoldMs allows/);
    expect(store.requests).toHaveLength(asked);
    expect(await others.acquire({ ...stranger("k"), ttlMs: 1 })).toEqual({ outcome: "granted" });
    expect(clock.pendingTimers).toBe(0);
  });

  test("comes with maxHoldMs without a burst of requests before, also where clocks may drift", async () => {
    const { clock, store } = setUp();
    const combined = new CombinedStore([store], { clock });
    const locks = new LockFactory(combined, { clock, ttlMs: 900, logger: silent });
    const lease = await locks.createLock("k").tryAcquire({ autoExtend: true, maxHoldMs: 2_000 });
    await clock.advance(1_950);
    expect(lease?.status).toBe("held");
    await clock.advance(50);
    expect(lease?.status).toBe("lost");
    expect(store.operations.filter((operation) => operation === "extend").length).toBeLessThanOrEqual(6);
  });

  test("comes with maxHoldMs also for the first TTL, when nothing is there to be extended", async () => {
    for (const autoExtend of [false, true]) {
      const { locks, clock, store } = setUp({ ttlMs: 10_000, maxHoldMs: 99.5, autoExtend });
      const lease = await locks.createLock("k").tryAcquire();
      await clock.advance(100);
      expect(lease?.status).toBe("lost");
      expect(store.requests).toMatchObject([{ operation: "acquire", ttlMs: 100 }]);
    }
  });

  test("comes with the release, which an extend on its way cannot undo", async () => {
    const { lease, clock, store, others } = await setUpLease();
    const gate = deferred();
    store.detour("extend", { before: () => gate.promise });
    await clock.advance(300);
    const releasing = lease.release();
    expect(store.operations).toEqual(["extend"]);
    gate.resolve();
    expect(await releasing).toBe("released");
    await clock.advance(5_000);
    expect(store.operations).toEqual(["extend", "release"]);
    expect(lease.status).toBe("released");
    expect(await others.acquire({ ...stranger("k"), ttlMs: 1 })).toEqual({ outcome: "granted" });
    expect(clock.pendingTimers).toBe(0);
  });

  test("is not put off by a failed extend that is answered after the release", async () => {
    const { lease, clock, store, warnings } = await setUpLease();
    const gate = deferred();
    store.detour("extend", { before: () => gate.promise, after: failing() });
    await clock.advance(300);
    const releasing = lease.release();
    gate.resolve();
    await releasing;
    await clock.advance(0);
    expect(clock.pendingTimers).toBe(0);
    await clock.advance(5_000);
    expect(store.operations).toEqual(["extend", "release"]);
    expect(warnings()).toEqual([]);
  });

  test("comes when the event loop was blocked past the TTL: it is lost, not revived", async () => {
    const state = new MemoryState();
    const store = new ObservedStore(new MemoryStore({ state }));
    const locks = new LockFactory(store, { ttlMs: 60, autoExtend: true, logger: silent });
    const lease = await locks.createLock("k").tryAcquire();
    const { signal } = lease ?? fail();
    block(80);
    const other = new MemoryStore({ state }).acquire({ ...stranger("k"), ttlMs: 60_000 });
    expect(await other).toEqual({ outcome: "granted" });
    await pause(120); // nobody has looked at the lease since: its own timers find out
    expect([lease?.status, signal.aborted]).toEqual(["lost", true]);
    expect(store.operations).toEqual(["acquire"]);
    expect(await new MemoryStore({ state }).isHeld(stranger("k"))).toBe(true);
  });

  test("comes when the loop was blocked while an extend was on its way, which is then given back", async () => {
    const state = new MemoryState();
    const store = new ObservedStore(new MemoryStore({ state }));
    const lease = await new LockFactory(store, { ttlMs: 900, autoExtend: true, logger: silent })
      .createLock("k")
      .tryAcquire();
    store.detour("extend", { after: async () => block(1_000) });
    await pause(1_500);
    expect(lease?.status).toBe("lost");
    expect(store.operations).toEqual(["acquire", "extend", "release"]);
    expect(await new MemoryStore({ state }).acquire({ ...stranger("k"), ttlMs: 1 })).toEqual({ outcome: "granted" });
  });
});

describe("a restored lease", () => {
  class SharedMemoryStore extends MemoryStore {
    override readonly reach = "shared";
  }

  async function setUpGiven() {
    const clock = new ManualClock();
    const store = new SharedMemoryStore({ state: new MemoryState({ clock }) });
    const locks = new LockFactory(store, { clock, ttlMs: 900, logger: silent });
    const given = await locks.createLock("k").tryAcquire();
    return { clock, store, locks, json: JSON.stringify(given), owner: given?.toJSON().owner ?? "" };
  }

  test("extends itself when it is restored so", async () => {
    const { clock, locks, json } = await setUpGiven();
    const lease = await locks.restore(json, { autoExtend: true, maxHoldMs: 5_000 });
    await clock.advance(4_999);
    expect(lease?.status).toBe("held");
    await clock.advance(1);
    expect(lease?.status).toBe("lost");
  });

  test("is not kept alive when it could not be restored", async () => {
    const { clock, locks, store, json, owner } = await setUpGiven();
    await store.demote({ key: "k", owner, ttlMs: 900 });
    await store.acquire({ ...stranger("k"), ttlMs: 60_000, mode: "shared" });
    expect(await locks.restore(json, { autoExtend: true })).toBeUndefined();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe("auto-extend with a tiny TTL", () => {
  test.each([1, 2, 5, 7])("never spins: %i ms", async (ttlMs) => {
    const store = new ObservedStore(new MemoryStore());
    const lock = new LockFactory(store, { ttlMs, autoExtend: true, logger: silent }).createLock("k");
    const lease = await lock.tryAcquire();
    await pause(100);
    await lease?.release();
    expect(store.operations.filter((operation) => operation === "extend").length).toBeLessThanOrEqual(20);
  });
});

test("a process ends although a lease of it extends itself", async () => {
  const file = fileURLToPath(new URL("fixtures/leave-while-extending.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=@ota/source", file], {
    timeout: 20_000,
  });
  expect(stdout).toBe("held\n");
});

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function block(ms: number): void {
  for (const start = performance.now(); performance.now() - start < ms; );
}

function fail(): never {
  throw new Error("not expected");
}
