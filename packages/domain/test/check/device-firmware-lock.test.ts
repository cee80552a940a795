import { LockFactory, LockOptionsError, LockStoreError, MemoryState, MemoryStore } from "@ota/lock-core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DeviceFirmwareLock, type DeviceFirmwareLockSettings } from "../../src/check/device-firmware-lock.ts";
import type { CheckEvent } from "../../src/check/events.ts";
import { overMemory, quietLogger } from "../support/fleet.ts";

const KEY = "ota:check:7:9";

/** A store whose answers a test can turn into faults, and that counts how often it is asked. */
function faultyStore(state = new MemoryState()) {
  const memory = new MemoryStore({ state });
  const control = { acquireFault: false, releaseFault: false, releaseTakes: Promise.resolve(), asked: [] as string[] };
  const store = overMemory({
    async acquire(request) {
      control.asked.push(request.key);
      if (control.acquireFault) throw fault("acquire", request.key);
      return memory.acquire(request);
    },
    async release(request) {
      await control.releaseTakes;
      if (control.releaseFault) throw fault("release", request.key);
      return memory.release(request);
    },
  });
  return { store, control };
}

function fault(operation: "acquire" | "release", key: string): LockStoreError {
  return new LockStoreError({ key, store: "faulty", operation, reason: "it is down" });
}

function setUp(settings: DeviceFirmwareLockSettings = {}, state?: MemoryState) {
  const { store, control } = faultyStore(state);
  const events: CheckEvent[] = [];
  const warnings: string[] = [];
  const lock = new DeviceFirmwareLock<string>({
    locks: new LockFactory(store, { logger: quietLogger }),
    logger: { ...quietLogger, warn: (_fields, message) => void warnings.push(message) },
    observe: (event) => void events.push(event),
    settings: { lockRetryIntervalMs: 1, ...settings },
  });
  const run = (work: () => Promise<string> = async () => "done") => lock.withDeviceFirmwareLock(7n, 9n, work);
  return { lock, run, events, warnings, store: control };
}

/** Holds the pair's lock from outside. */
async function held(state: MemoryState, { ttlMs }: { readonly ttlMs: number }) {
  const lock = new LockFactory(new MemoryStore({ state }), { logger: quietLogger }).createLock(KEY, { ttlMs });
  return lock.acquire({ maxAttempts: 1 });
}

describe("withDeviceFirmwareLock", () => {
  it("holds a lock named after prefix, device and firmware while the section runs, and no longer", async () => {
    const state = new MemoryState();
    const other = new LockFactory(new MemoryStore({ state }), { logger: quietLogger }).createLock(`acme:${KEY}`);
    const { lock, run } = setUp({ lockKeyPrefix: "acme:" }, state);
    const during = await run(async () => String(await other.tryAcquire()));
    expect(during).toBe("undefined");
    await lock.released();
    expect(await other.tryAcquire()).toBeDefined();
  });

  it("releases the lock when the section fails, and the section's error is the caller's", async () => {
    const { run } = setUp();
    await expect(run(() => Promise.reject(new Error("section")))).rejects.toThrow("section");
    await expect(run()).resolves.toBe("done");
  });

  it("answers SERVICE_BUSY after the bounded number of attempts, and says so as a warning", async () => {
    const state = new MemoryState();
    await held(state, { ttlMs: 60_000 });
    const { run, events, warnings, store } = setUp({ lockMaxAttempts: 5 }, state);
    await expect(run()).rejects.toMatchObject({ code: "SERVICE_BUSY", retryAfterSeconds: expect.any(Number) });
    expect(store.asked).toHaveLength(5);
    expect(warnings).toEqual([expect.stringContaining("SERVICE_BUSY")]);
    expect(events).toEqual([{ kind: "lock", outcome: "contended", waitedMs: expect.any(Number) }]);
  });

  it("gets the lock of a holder that died once its TTL is over", async () => {
    const state = new MemoryState();
    await held(state, { ttlMs: 60 });
    const { run } = setUp({ lockMaxAttempts: 1_000 }, state);
    await expect(run()).resolves.toBe("done");
  });

  it("does not let the caller wait for the release, and says when all are released", async () => {
    const { lock, run, store } = setUp();
    const slow = Promise.withResolvers<void>();
    store.releaseTakes = slow.promise;
    expect(await run()).toBe("done");
    const released = lock.released().then(() => "released");
    expect(await Promise.race([released, new Promise((resolve) => setTimeout(resolve, 20, "waiting"))])).toBe(
      "waiting",
    );
    slow.resolve();
    expect(await released).toBe("released");
  });

  it("a release that fails does not touch the section's result", async () => {
    const { lock, run, store, warnings } = setUp();
    store.releaseFault = true;
    await expect(run()).resolves.toBe("done");
    await lock.released();
    expect(warnings).toHaveLength(1);
  });

  it("a release that fails does not touch the section's error", async () => {
    const { run, store } = setUp();
    store.releaseFault = true;
    await expect(run(() => Promise.reject(new Error("section")))).rejects.toThrow("section");
  });

  it("refuses a setting that no lock accepts when it is made, not at the first check", () => {
    expect(() => setUp({ lockTtlMs: 0 })).toThrow(LockOptionsError);
    expect(() => setUp({ lockMaxAttempts: 0 })).toThrow(LockOptionsError);
  });
});

describe("withDeviceFirmwareLock with its store at fault", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("goes on without the lock by default", async () => {
    const { run, store, events, warnings, lock } = setUp();
    store.acquireFault = true;
    await expect(run()).resolves.toBe("done");
    expect(events).toEqual([
      { kind: "breaker", state: "open" },
      { kind: "lock", outcome: "fault", waitedMs: expect.any(Number) },
    ]);
    expect(warnings).toHaveLength(1);
    expect(lock.health()).toBe("degraded");
  });

  it("answers SERVICE_BUSY where the policy is busy, and the section does not run", async () => {
    const { run, store } = setUp({ lockOutage: "busy" });
    store.acquireFault = true;
    const section = vi.fn(async () => "done");
    await expect(run(section)).rejects.toMatchObject({ code: "SERVICE_BUSY" });
    await expect(run(section)).rejects.toMatchObject({ code: "SERVICE_BUSY" });
    expect(section).not.toHaveBeenCalled();
  });

  it("does not ask the store again for a second after a fault", async () => {
    const { run, store, events } = setUp();
    store.acquireFault = true;
    for (let check = 0; check < 5; check += 1) await run();
    vi.advanceTimersByTime(999);
    await run();
    expect(store.asked).toHaveLength(1);
    expect(events.filter(({ kind }) => kind === "lock_skipped")).toHaveLength(5);
  });

  it("tries again with one check a second, not with all", async () => {
    const { lock, store } = setUp();
    store.acquireFault = true;
    await lock.withDeviceFirmwareLock(1n, 1n, async () => "");
    vi.advanceTimersByTime(1_000);
    await Promise.all(Array.from({ length: 20 }, (_, n) => lock.withDeviceFirmwareLock(BigInt(n), 1n, async () => "")));
    expect(store.asked).toHaveLength(2);
  });

  it("locks again as soon as the store answers", async () => {
    const { run, store, events, lock } = setUp();
    store.acquireFault = true;
    await run();
    store.acquireFault = false;
    vi.advanceTimersByTime(1_000);
    await run();
    expect(events.at(-1)).toMatchObject({ kind: "lock", outcome: "acquired" });
    expect(events).toContainEqual({ kind: "breaker", state: "closed" });
    expect(lock.health()).toBe("up");
    await run();
    expect(store.asked).toHaveLength(3);
  });

  it("finds out that the store is back without any check, by being asked for its health", async () => {
    const { run, store, lock } = setUp();
    store.acquireFault = true;
    await run();
    store.acquireFault = false;
    expect(lock.health()).toBe("degraded");
    vi.advanceTimersByTime(1_000);
    expect(lock.health()).toBe("degraded");
    await vi.waitFor(() => expect(lock.health()).toBe("up"));
  });
});
