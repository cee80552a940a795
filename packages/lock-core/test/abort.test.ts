import { describe, expect, test } from "vitest";
import { deferred, failing, setUp, stranger } from "./support.ts";

describe("an acquire that is aborted", () => {
  const reason = new Error("the client has gone");

  test("sends nothing when it was aborted before", async () => {
    const { locks, store } = setUp();
    const signal = AbortSignal.abort(reason);
    await expect(locks.createLock("k").tryAcquire({ signal })).rejects.toBe(reason);
    await expect(locks.createLock("k").acquire({ signal })).rejects.toBe(reason);
    expect(store.requests).toEqual([]);
  });

  test("rejects in the middle of its request, and gives back what it is granted later", async () => {
    const { locks, store, others, clock } = setUp();
    const gate = deferred();
    store.detour("acquire", { after: () => gate.promise });
    const controller = new AbortController();
    const acquiring = locks.createLock("k").tryAcquire({ signal: controller.signal });
    await clock.advance(1);
    controller.abort(reason);
    await expect(acquiring).rejects.toBe(reason);
    expect(store.operations).toEqual(["acquire"]);

    gate.resolve();
    await clock.advance(0);
    expect(store.operations).toEqual(["acquire", "release"]);
    expect(store.requests[1]?.owner).toBe(store.requests[0]?.owner);
    expect(await others.acquire({ ...stranger("k"), ttlMs: 1 })).toEqual({ outcome: "granted" });
  });

  test("gives nothing back when it was refused in the end", async () => {
    const { locks, store, others, clock, warnings } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const gate = deferred();
    store.detour("acquire", { after: () => gate.promise });
    const controller = new AbortController();
    const acquiring = locks.createLock("k").tryAcquire({ signal: controller.signal });
    controller.abort(reason);
    await expect(acquiring).rejects.toBe(reason);
    gate.resolve();
    await clock.advance(0);
    expect(store.operations).toEqual(["acquire"]);
    expect(warnings()).toEqual([]);
  });

  test("notes a fault that its request ends in after all", async () => {
    const { locks, store, clock, log } = setUp();
    const gate = deferred();
    store.detour("acquire", { before: () => gate.promise });
    const controller = new AbortController();
    const acquiring = locks.createLock("k").tryAcquire({ signal: controller.signal });
    controller.abort(reason);
    await expect(acquiring).rejects.toBe(reason);
    gate.reject(new Error("ECONNRESET"));
    await clock.advance(0);
    expect(log).toMatchObject([{ level: "debug", fields: { key: "k", err: { code: "LOCK_STORE_FAULT" } } }]);
  });

  test("warns when what it was granted cannot be given back", async () => {
    const { locks, store, clock, log } = setUp();
    const gate = deferred();
    store.detour("acquire", { after: () => gate.promise });
    store.detour("release", { before: failing() });
    const controller = new AbortController();
    const acquiring = locks.createLock("k").tryAcquire({ signal: controller.signal });
    controller.abort(reason);
    await expect(acquiring).rejects.toBe(reason);
    gate.resolve();
    await clock.advance(0);
    expect(log).toMatchObject([{ level: "warn", fields: { key: "k", err: { code: "LOCK_STORE_FAULT" } } }]);
  });

  test("rejects in a pause between two attempts, and leaves no timer", async () => {
    const { locks, store, others, clock } = setUp();
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const controller = new AbortController();
    const acquiring = locks.createLock("k").acquire({ signal: controller.signal });
    await clock.advance(0);
    expect(clock.pendingTimers).toBe(1);
    controller.abort(reason);
    await expect(acquiring).rejects.toBe(reason);
    expect(clock.pendingTimers).toBe(0);
    expect(store.operations).toEqual(["acquire"]);
  });

  test("leaves no listener on a signal that outlives it", async () => {
    const { locks, others, clock } = setUp();
    let listeners = 0;
    const signal = {
      aborted: false,
      reason: undefined,
      addEventListener: () => void listeners++,
      removeEventListener: () => void listeners--,
    };
    await locks.createLock("free").acquire({ signal });
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    const acquiring = locks.createLock("k").acquire({ signal, maxAttempts: 3 });
    acquiring.catch(() => {});
    await clock.advance(1_000);
    await expect(acquiring).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await clock.advance(0);
    expect(listeners).toBe(0);
  });
});
