import { LockFactory, LockLostError, MemoryStore } from "@ota/lock-core";
import { describe, expect, test } from "vitest";
import { setUp } from "./support.ts";

/** A lease of 1 s on the key "k", in a world of its own. */
async function setUpLease() {
  const world = setUp();
  const lease = await world.locks.createLock("k").tryAcquire();
  if (lease === undefined) throw new Error("the key is free");
  return { ...world, lease };
}

describe("lease.signal", () => {
  test("is the same one each time, and costs no timer before it is asked for", async () => {
    const { lease, clock } = await setUpLease();
    expect(clock.pendingTimers).toBe(0);
    expect(lease.signal).toBe(lease.signal);
    expect(clock.pendingTimers).toBe(1);
  });

  test("aborts when the lease lapses, though nobody asks, with a LockLostError as its reason", async () => {
    const { lease, clock, warnings } = await setUpLease();
    const { signal } = lease;
    await clock.advance(999);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST", key: "k" });
    expect(warnings()).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });

  test("aborts as soon as an extend or isHeld finds the lease gone", async () => {
    const { lease, others } = await setUpLease();
    const { signal } = lease;
    await others.forceRelease({ key: "k" });
    expect(await lease.isHeld()).toBe(false);
    expect(String(signal.reason)).toMatch(/the store no longer knew it/);
  });

  test.each([
    { what: "a later", ttlMs: 5_000 },
    { what: "an earlier", ttlMs: 100 },
  ])("follows the end of the lease to $what one", async ({ ttlMs }) => {
    const { lease, clock } = await setUpLease();
    const { signal } = lease;
    await lease.extend(ttlMs);
    await clock.advance(ttlMs - 1);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
  });

  test("has aborted when the lease was lost before it was asked for", async () => {
    const { lease, clock } = await setUpLease();
    await clock.advance(1_000);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
  });

  test("does not abort by the holder's own release, before or after it is asked for", async () => {
    const { lease, clock } = await setUpLease();
    const { signal } = lease;
    await lease.release();
    expect(clock.pendingTimers).toBe(0);
    await clock.advance(5_000);
    expect(signal.aborted).toBe(false);

    const other = await setUpLease();
    await other.lease.release();
    await other.clock.advance(5_000);
    expect(other.lease.signal.aborted).toBe(false);
    expect([clock.pendingTimers, other.clock.pendingTimers]).toEqual([0, 0]);
  });

  test("aborts when the release finds that the lease was gone already", async () => {
    const { lease, others } = await setUpLease();
    const { signal } = lease;
    await others.forceRelease({ key: "k" });
    expect(await lease.release()).toBe("not-held");
    expect(signal.aborted).toBe(true);
  });

  test("stops work that takes a signal", async () => {
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const lock = new LockFactory(new MemoryStore(), { ttlMs: 30, logger }).createLock("k");
    const lease = await lock.tryAcquire();
    const work = new Promise((_, reject) => {
      lease?.signal.addEventListener("abort", () => reject(lease.signal.reason), { once: true });
      setTimeout(reject, 5_000, new Error("the work went on")).unref();
    });
    await Promise.race([work, new Promise((resolve) => setTimeout(resolve, 200))]).then(
      () => expect.unreachable("the signal did not abort in time"),
      (error: unknown) => expect(error).toBeInstanceOf(LockLostError),
    );
  });
});
