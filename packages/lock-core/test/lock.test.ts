import { LockKeyConflictError, LockOptionsError, LockStoreError } from "@ota/lock-core";
import { describe, expect, test } from "vitest";
import { failing, setUp, stranger } from "./support.ts";

describe("Lock.tryAcquire", () => {
  test("gives a lease on a free key and undefined on a held one", async () => {
    const { locks } = setUp();
    const lock = locks.createLock("k");
    const lease = await lock.tryAcquire();
    expect(lease?.key).toBe("k");
    expect(lease?.status).toBe("held");
    expect(await lock.tryAcquire()).toBeUndefined();
    expect(await locks.createLock("k").tryAcquire()).toBeUndefined();
  });

  test("asks the store once, for the lock's TTL", async () => {
    const { locks, store } = setUp();
    await locks.createLock("k", { ttlMs: 1_500 }).tryAcquire();
    expect(store.requests).toEqual([
      { operation: "acquire", key: "k", owner: expect.stringMatching(/^.{44}$/), ttlMs: 1_500, fencing: false },
    ]);
  });

  test("takes a new owner for each acquisition", async () => {
    const { locks, store } = setUp();
    const lock = locks.createLock("k");
    for (let time = 0; time < 3; time++) await (await lock.tryAcquire())?.release();
    const owners = store.requests.filter(({ operation }) => operation === "acquire").map(({ owner }) => owner);
    expect(new Set(owners).size).toBe(3);
  });

  test("counts the lease's time from before the request left", async () => {
    const { locks, store, clock } = setUp();
    store.detour("acquire", { before: () => clock.advance(200), after: () => clock.advance(100) });
    const lease = await locks.createLock("k").tryAcquire();
    expect(lease?.remainingMs()).toBe(700);
  });

  test("throws on a grant that arrives at its deadline or later, and gives it back", async () => {
    for (const delayMs of [1_000, 5_000]) {
      const { locks, store, clock, others } = setUp();
      store.detour("acquire", { before: () => clock.advance(delayMs) });
      await expect(locks.createLock("k").tryAcquire()).rejects.toMatchObject({
        code: "LOCK_STORE_FAULT",
        operation: "acquire",
        message: expect.stringContaining(`its grant took ${delayMs} ms`),
      });
      expect(store.operations).toEqual(["acquire", "release"]);
      expect(await others.acquire({ ...stranger("k"), ttlMs: 1 })).toEqual({ outcome: "granted" });
    }
  });

  test("says contended, however late the answer", async () => {
    const { locks, store, clock, others } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    store.detour("acquire", { after: () => clock.advance(5_000) });
    expect(await locks.createLock("k").tryAcquire()).toBeUndefined();
    expect(store.operations).toEqual(["acquire"]);
  });

  test("turns what a store throws into a LockStoreError that names the operation and keeps the cause", async () => {
    const { locks, store } = setUp();
    store.detour("acquire", { before: failing("ECONNRESET") });
    const error = await locks
      .createLock("k")
      .tryAcquire()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ key: "k", store: "observed", operation: "acquire", cause: new Error("ECONNRESET") });
  });

  test("passes a store's own lock errors on unchanged", async () => {
    const { locks, store } = setUp();
    const conflict = new LockKeyConflictError({ key: "k", found: "a hash" });
    store.detour("acquire", { before: () => Promise.reject(conflict) });
    await expect(locks.createLock("k").tryAcquire()).rejects.toBe(conflict);
  });

  test("takes an answer that the contract does not know for a fault, not for contention", async () => {
    for (const answer of [undefined, null, true, "granted", { outcome: "maybe" }]) {
      const { locks, store } = setUp();
      store.detour("acquire", { answer });
      await expect(locks.createLock("k").tryAcquire()).rejects.toMatchObject({ code: "LOCK_STORE_FAULT" });
    }
  });
});

describe("Lock.acquire", () => {
  test("is granted a free key at once", async () => {
    const { locks, store, clock } = setUp();
    const lease = await locks.createLock("k").acquire();
    expect(lease.remainingMs()).toBe(1_000);
    expect(store.operations).toEqual(["acquire"]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("waits for a held key, and its lease starts at the attempt that won", async () => {
    const { locks, store, others, clock } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const acquiring = locks.createLock("k").acquire();
    await clock.advance(5_000);
    await others.release(stranger("k"));
    const releasedAt = clock.now();
    await clock.advance(100);
    const lease = await acquiring;
    expect(lease.remainingMs()).toBeGreaterThanOrEqual(900);
    expect(clock.now() - releasedAt).toBe(100);
    expect(new Set(store.requests.map(({ owner }) => owner)).size).toBe(1);
  });

  test("asks exactly once with waitTimeoutMs: 0", async () => {
    const { locks, store, others } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    await expect(locks.createLock("k").acquire({ waitTimeoutMs: 0 })).rejects.toMatchObject({
      code: "LOCK_TIMEOUT",
      key: "k",
      waitedMs: 0,
      attempts: 1,
    });
    expect(store.operations).toEqual(["acquire"]);
  });

  test("gives up at its time limit and not a pause later, with a last attempt right then", async () => {
    for (let round = 0; round < 20; round++) {
      const { locks, others, clock } = setUp();
      await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
      const acquiring = locks.createLock("k").acquire({ waitTimeoutMs: 250, retryDelayMs: 100 });
      acquiring.catch(() => {});
      await clock.advance(249);
      await others.release(stranger("k"));
      await others.acquire({ ...stranger("k"), ttlMs: 1 });
      await clock.advance(1);
      expect((await acquiring).status).toBe("held");
    }
  });

  test("waits ten seconds by default", async () => {
    const { locks, others, clock } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const acquiring = locks.createLock("k").acquire();
    acquiring.catch(() => {});
    await clock.advance(9_999);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(1);
    expect(clock.pendingTimers).toBe(0);
    await expect(acquiring).rejects.toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: 10_000 });
  });

  test("pauses for a random time between half of retryDelayMs and all of it", async () => {
    const { locks, store, others, clock } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 600_000 });
    const askedAt: number[] = [];
    for (let attempt = 0; attempt < 50; attempt++) {
      store.detour("acquire", { before: async () => void askedAt.push(clock.now()) });
    }
    const acquiring = locks.createLock("k").acquire({ maxAttempts: 50, retryDelayMs: 1_000 });
    acquiring.catch(() => {});
    await clock.advance(60_000);
    const pauses = askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0));
    expect(pauses).toHaveLength(49);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000);
    expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(100);
  });

  test("with maxAttempts asks so many times and has no limit in time of its own", async () => {
    const { locks, store, others, clock } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 600_000 });
    const acquiring = locks.createLock("k").acquire({ maxAttempts: 5, retryDelayMs: 10_000 });
    acquiring.catch(() => {});
    await clock.advance(19_000);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(21_000);
    await expect(acquiring).rejects.toMatchObject({ code: "LOCK_TIMEOUT", attempts: 5 });
    expect(store.requests).toHaveLength(5);
  });

  test("with both limits ends at the one that is reached first", async () => {
    const { locks, others, clock } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 600_000 });
    const byAttempts = locks.createLock("k").acquire({ maxAttempts: 2, retryDelayMs: 10, waitTimeoutMs: 5_000 });
    const byTime = locks.createLock("k").acquire({ maxAttempts: 1_000, retryDelayMs: 10, waitTimeoutMs: 50 });
    byAttempts.catch(() => {});
    byTime.catch(() => {});
    await clock.advance(50);
    await expect(byAttempts).rejects.toMatchObject({ attempts: 2 });
    await expect(byTime).rejects.toMatchObject({ waitedMs: 50 });
  });

  test("ends its wait at a fault, for it waits for held locks only", async () => {
    const { locks, store, others, clock } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    store.detour("acquire", {});
    store.detour("acquire", { before: failing() });
    const acquiring = locks.createLock("k").acquire();
    acquiring.catch(() => {});
    await clock.advance(100);
    await expect(acquiring).rejects.toMatchObject({ code: "LOCK_STORE_FAULT" });
    expect(store.requests).toHaveLength(2);
    expect(clock.pendingTimers).toBe(0);
  });

  test("takes limits from the call, else from the lock, else from the factory", async () => {
    const { locks, store, others, clock } = setUp({ maxAttempts: 2, retryDelayMs: 10 });
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const attemptsOf = async (acquiring: Promise<unknown>) => {
      acquiring.catch(() => {});
      await clock.advance(1_000);
      await expect(acquiring).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
      return store.requests.splice(0).length;
    };
    expect(await attemptsOf(locks.createLock("k").acquire())).toBe(2);
    expect(await attemptsOf(locks.createLock("k", { maxAttempts: 3 }).acquire())).toBe(3);
    expect(await attemptsOf(locks.createLock("k", { maxAttempts: 3 }).acquire({ maxAttempts: 4 }))).toBe(4);
    expect(
      await attemptsOf(locks.createLock("k", { maxAttempts: undefined }).acquire({ maxAttempts: undefined })),
    ).toBe(2);
  });

  test("refuses options that cannot be, before any request", async () => {
    const { locks, store } = setUp();
    const lock = locks.createLock("k");
    await expect(lock.acquire({ waitTimeoutMs: -1 })).rejects.toBeInstanceOf(LockOptionsError);
    await expect(lock.run(() => 1, { maxAttempts: 0 })).rejects.toBeInstanceOf(LockOptionsError);
    await expect(lock.tryAcquire({ signal: 5 as never })).rejects.toBeInstanceOf(LockOptionsError);
    expect(store.requests).toEqual([]);
  });

  test("serves many calls on one lock one after the other, each with a lease of its own", async () => {
    const { locks, clock } = setUp();
    const lock = locks.createLock("k", { retryDelayMs: 5, ttlMs: 60_000, waitTimeoutMs: 60_000 });
    let inside = 0;
    let most = 0;
    const leases = new Set();
    const all = Promise.all(
      Array.from({ length: 20 }, () =>
        lock.run(async (lease) => {
          leases.add(lease);
          most = Math.max(most, ++inside);
          await new Promise<void>((resolve) => void clock.setTimer(10, resolve));
          inside--;
        }),
      ),
    );
    for (let step = 0; step < 100; step++) await clock.advance(10);
    await all;
    expect(most).toBe(1);
    expect(leases.size).toBe(20);
  });
});

describe("Lock.run", () => {
  test("gives the body's result and releases the lock", async () => {
    const { locks, store } = setUp();
    const lock = locks.createLock("k");
    expect(await lock.run(async (lease) => `${lease.key} ${lease.status}`)).toBe("k held");
    expect(await lock.run(() => 5)).toBe(5);
    expect(store.operations).toEqual(["acquire", "release", "acquire", "release"]);
    expect(await lock.tryAcquire()).toBeDefined();
  });

  test("throws the body's error and releases the lock", async () => {
    const { locks, store } = setUp();
    const error = new Error("body");
    await expect(locks.createLock("k").run(() => Promise.reject(error))).rejects.toBe(error);
    await expect(
      locks.createLock("k").run(() => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(store.operations).toEqual(["acquire", "release", "acquire", "release"]);
  });

  test("lets the body's error win over a failing release, which is logged", async () => {
    const { locks, store, log } = setUp();
    store.detour("release", { before: failing() });
    const error = new Error("body");
    await expect(locks.createLock("k").run(() => Promise.reject(error))).rejects.toBe(error);
    expect(log).toMatchObject([
      { level: "debug" },
      { level: "warn", fields: { key: "k", err: { code: "LOCK_STORE_FAULT", operation: "release" } } },
    ]);
  });

  test("lets the body's result stand when the release fails, which is logged, and asks once only", async () => {
    const { locks, store, warnings } = setUp();
    store.detour("release", { before: failing() });
    expect(await locks.createLock("k").run(() => "done")).toBe("done");
    expect(store.operations).toEqual(["acquire", "release"]);
    expect(warnings()).toHaveLength(1);
  });

  test("reports a body that outlived its lease, and still gives the lock back", async () => {
    const { locks, store, clock } = setUp();
    await expect(locks.createLock("k").run(() => clock.advance(1_000))).rejects.toMatchObject({
      code: "LOCK_LOST",
      key: "k",
    });
    expect(store.operations).toEqual(["acquire", "release"]);
  });

  test("reports a body whose lease the store no longer knew", async () => {
    const { locks, others } = setUp();
    await expect(locks.createLock("k").run(() => others.forceRelease({ key: "k" }))).rejects.toMatchObject({
      code: "LOCK_LOST",
    });
  });

  test("lets the body's error win over the loss of the lease, which is logged", async () => {
    const { locks, clock, warnings } = setUp();
    const error = new Error("body");
    const running = locks.createLock("k").run(async () => {
      await clock.advance(1_000);
      throw error;
    });
    await expect(running).rejects.toBe(error);
    expect(warnings()).toHaveLength(1);
  });

  test("is content with a body that released the lock itself", async () => {
    const { locks, store, clock } = setUp();
    const result = await locks.createLock("k").run(async (lease) => {
      expect(await lease.release()).toBe("released");
      await clock.advance(5_000);
      return "done";
    });
    expect(result).toBe("done");
    expect(store.operations).toEqual(["acquire", "release"]);
  });

  test("does not call the body without the lock", async () => {
    const { locks, others } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    let called = false;
    const running = locks.createLock("k").run(
      () => {
        called = true;
      },
      { waitTimeoutMs: 0 },
    );
    await expect(running).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    expect(called).toBe(false);
  });
});
