import { inspect } from "node:util";
import { CombinedStore, type LockEvents, LockFactory, MemoryStore, onLockEvent } from "@ota/lock-core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { failing, ObservedStore, setUp, stranger } from "./support.ts";

const NAMES: readonly (keyof LockEvents)[] = [
  "ota:lock:acquired",
  "ota:lock:contended",
  "ota:lock:timed-out",
  "ota:lock:extended",
  "ota:lock:promoted",
  "ota:lock:demoted",
  "ota:lock:released",
  "ota:lock:lost",
  "ota:lock:failed",
];

let told: [string, unknown][] = [];
let stops: (() => void)[] = [];
beforeEach(() => {
  told = [];
  stops = NAMES.map((name) => onLockEvent(name, (event) => told.push([name.slice("ota:lock:".length), event])));
});
afterEach(() => {
  for (const stop of stops) stop();
});

const facts = { key: "k", store: "observed", mode: "exclusive" };

describe("lock events", () => {
  test("tell of a lease from its grant to its release, with the times", async () => {
    const { locks, clock, store } = setUp();
    store.detour("acquire", { before: () => clock.advance(7) });
    const lease = await locks.createLock("k").acquire();
    await clock.advance(100);
    await lease.extend();
    await clock.advance(100);
    await lease.release();
    expect(told).toEqual([
      ["acquired", { ...facts, waitMs: 7, attempts: 1 }],
      ["extended", { ...facts, holdMs: 107 }],
      ["released", { ...facts, holdMs: 207 }],
    ]);
  });

  test("tell of changes of the mode", async () => {
    const { locks } = setUpMemory();
    const lease = await locks.createLock("k").acquire({ mode: "shared" });
    await lease.promote();
    await lease.demote();
    await lease.release();
    expect(told.map(([name, event]) => [name, (event as { mode: string }).mode])).toEqual([
      ["acquired", "shared"],
      ["promoted", "exclusive"],
      ["demoted", "shared"],
      ["released", "shared"],
    ]);
  });

  test("tell the mode that was granted, which is exclusive where there are no shared locks", async () => {
    const { locks } = setUp();
    await locks.createLock("k").tryAcquire({ mode: "shared" });
    expect(told).toEqual([["acquired", { ...facts, waitMs: 0, attempts: 1 }]]);
  });

  test("tell of a wait: each refused attempt, and what came of it", async () => {
    const { locks, clock, others } = setUp({ retryDelayMs: 100 });
    await others.acquire({ ...stranger("k"), ttlMs: 250 });
    const acquiring = locks.createLock("k").acquire({ waitTimeoutMs: 5_000 });
    await clock.advance(1_000);
    await acquiring;
    const last = told.pop();
    expect(told.length).toBeGreaterThanOrEqual(3);
    for (const event of told) expect(event).toEqual(["contended", facts]);
    expect(last).toEqual(["acquired", { ...facts, waitMs: expect.any(Number), attempts: told.length + 1 }]);
    expect(last).toMatchObject(["acquired", { waitMs: expect.toSatisfy((ms: number) => ms >= 250 && ms <= 350) }]);
  });

  test("tell of a wait that reached its limit, and of a single attempt that was refused", async () => {
    const { locks, others } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    await locks.createLock("k").tryAcquire({ mode: "shared" });
    await locks
      .createLock("k")
      .acquire({ waitTimeoutMs: 0 })
      .catch(() => {});
    expect(told).toEqual([
      ["contended", { ...facts, mode: "shared" }],
      ["contended", facts],
      ["timed-out", { ...facts, waitMs: 0, attempts: 1 }],
    ]);
  });

  test("tell once of a lost lease, and why", async () => {
    const { locks, clock } = setUp();
    const lease = await locks.createLock("k").acquire();
    await clock.advance(1_500);
    expect([lease.status, lease.status]).toEqual(["lost", "lost"]);
    await lease.release();
    expect(told.slice(1)).toEqual([["lost", { ...facts, holdMs: 1_500, reason: "its lifetime was over" }]]);
  });

  test("tell of a lease that its release found gone as lost, not as released", async () => {
    const { locks, others } = setUp();
    const lease = await locks.createLock("k").acquire();
    await others.forceRelease({ key: "k" });
    await lease.release();
    expect(told.map(([name]) => name)).toEqual(["acquired", "lost"]);
  });

  test("tell of a failing store, and of one that a combination could do without", async () => {
    const parts = [1, 2, 3].map(() => new ObservedStore(new MemoryStore()));
    const combined = new CombinedStore(parts);
    const lock = new LockFactory(combined).createLock("k");
    parts[0]?.detour("acquire", { before: failing() });
    await lock.tryAcquire();
    expect(told.filter(([name]) => name === "failed")).toMatchObject([
      ["failed", { key: "k", store: "observed", operation: "acquire", error: { code: "LOCK_STORE_FAULT" } }],
    ]);
  });

  test("never carry an owner token", async () => {
    const { locks, clock, store } = setUp();
    const lease = await locks.createLock("k").acquire();
    store.detour("extend", { before: failing() });
    await lease.extend().catch(() => {});
    await lease.extend();
    await clock.advance(2_000);
    await lease.release();
    expect(told.map(([name]) => name)).toEqual(["acquired", "failed", "extended", "lost"]);
    expect(inspect(told, { depth: 9 })).not.toContain(store.requests[0]?.owner);
  });

  test("end with the subscription", async () => {
    for (const stop of stops) stop();
    const { locks } = setUp();
    await locks.createLock("k").tryAcquire();
    expect(told).toEqual([]);
  });
});

function setUpMemory() {
  return { locks: new LockFactory(new MemoryStore()) };
}
