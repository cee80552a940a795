import { type Clock, LockFactory, MemoryState, MemoryStore } from "@ota/lock-core";
import { ManualClock } from "@ota/lock-core/testing";
import { expect, test } from "vitest";
import { ObservedStore, stranger } from "./support.ts";

test("a wait makes one last attempt at its limit, though timers fire a little early as Node's do", async () => {
  const manual = new ManualClock();
  const early: Clock = {
    now: () => manual.now(),
    setTimer: (delayMs, callback) => manual.setTimer(Math.max(0, delayMs - 0.5), callback),
  };
  const state = new MemoryState({ clock: manual });
  const store = new ObservedStore(new MemoryStore({ state }));
  await new MemoryStore({ state }).acquire({ ...stranger("k"), ttlMs: 60_000 });
  const lock = new LockFactory(store, { clock: early }).createLock("k");

  const acquiring = lock.acquire({ waitTimeoutMs: 10, retryDelayMs: 1_000 });
  acquiring.catch(() => {}); // Awaited below.
  await manual.advance(20);
  await expect(acquiring).rejects.toMatchObject({ code: "LOCK_TIMEOUT", attempts: 2 });
  expect(store.requests).toHaveLength(2);
});
