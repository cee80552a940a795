import { once } from "node:events";
import { LockFactory, MemoryState, MemoryStore } from "@ota/lock-core";
import { ManualClock } from "@ota/lock-core/testing";
import { describe, expect, test } from "vitest";
import { setUp } from "./support.ts";

describe("logging", () => {
  test("without a logger sends warnings to the process, so that none is lost", async () => {
    const clock = new ManualClock();
    const store = new MemoryStore({ state: new MemoryState({ clock }) });
    const lease = await new LockFactory(store, { clock, ttlMs: 10 }).createLock("k").acquire();
    await clock.advance(10);
    const warned = once(process, "warning");
    await lease[Symbol.asyncDispose]();
    const [warning] = await warned;
    expect(warning).toMatchObject({ name: "LockWarning", message: "A lease was lost before it was released." });
    expect(warning.detail).toBe('{"reason":"its lifetime was over","key":"k","store":"memory"}');
  });

  test("notes grants and refusals at debug level, with key and store", async () => {
    const { locks, log } = setUp();
    const lock = locks.createLock("k");
    await lock.tryAcquire();
    await lock.tryAcquire();
    expect(log).toEqual([
      { level: "debug", message: "The lock was acquired.", fields: { key: "k", store: "observed" } },
      { level: "debug", message: "The lock is held by someone else.", fields: { key: "k", store: "observed" } },
    ]);
  });
});
