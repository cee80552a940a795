import { inspect } from "node:util";
import { LockFactory, LockLostError, MemoryStore } from "@ota/lock-core";
import { describe, expect, test } from "vitest";
import { deferred, failing, setUp, stranger } from "./support.ts";

/** A lease of 1 s on the key "k", in a world of its own. */
async function setUpLease() {
  const world = setUp();
  const lease = await world.locks.createLock("k").acquire();
  world.store.requests.length = 0;
  world.log.length = 0;
  return { ...world, lease };
}

describe("a lease's own clock", () => {
  test("counts down to the deadline, where the lease ends for good", async () => {
    const { lease, clock } = await setUpLease();
    await clock.advance(999);
    expect([lease.remainingMs(), lease.isExpired(), lease.status]).toEqual([1, false, "held"]);
    expect(() => lease.assertHeld()).not.toThrow();
    await clock.advance(1);
    expect([lease.remainingMs(), lease.isExpired(), lease.status]).toEqual([0, true, "lost"]);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
  });

  test("is right when the event loop was blocked", async () => {
    const lease = await new LockFactory(new MemoryStore(), { ttlMs: 20 }).createLock("k").acquire();
    for (const start = performance.now(); performance.now() - start < 25; );
    expect(lease.isExpired()).toBe(true);
    expect(() => lease.assertHeld()).toThrow(/lifetime was over/);
  });

  test("logs once that the lease was lost", async () => {
    const { lease, clock, log } = await setUpLease();
    await clock.advance(2_000);
    expect([lease.status, lease.isExpired(), await lease.extend()]).toEqual(["lost", true, "lost"]);
    expect(log).toMatchObject([{ level: "warn", fields: { key: "k", store: "observed" } }]);
  });

  test("has ended for the holder as soon as the release is called", async () => {
    const { lease } = await setUpLease();
    const releasing = lease.release();
    expect([lease.remainingMs(), lease.isExpired(), lease.status]).toEqual([0, true, "released"]);
    expect(() => lease.assertHeld()).toThrow(/it had been released/);
    expect(await releasing).toBe("released");
  });
});

describe("Lease.isHeld", () => {
  test("asks the store about this owner", async () => {
    const { lease, store } = await setUpLease();
    expect(await lease.isHeld()).toBe(true);
    expect(store.operations).toEqual(["isHeld"]);
  });

  test("finds out that the lease was taken away", async () => {
    const { lease, others, log } = await setUpLease();
    await others.forceRelease({ key: "k" });
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    expect(lease.status).toBe("held");
    expect(await lease.isHeld()).toBe(false);
    expect(lease.status).toBe("lost");
    expect(() => lease.assertHeld()).toThrow(/the store no longer knew it/);
    expect(log).toHaveLength(1);
  });

  test("is false without asking once the lease has ended", async () => {
    const { lease, store, clock } = await setUpLease();
    await clock.advance(1_000);
    expect(await lease.isHeld()).toBe(false);
    expect(store.requests).toEqual([]);
  });

  test("is false when the lease ended before the answer came", async () => {
    const { lease, store, clock } = await setUpLease();
    store.detour("isHeld", { after: () => clock.advance(1_000) });
    expect(await lease.isHeld()).toBe(false);
  });

  test("does not take its own release for a loss", async () => {
    const { lease, store, clock } = await setUpLease();
    const gate = deferred();
    store.detour("isHeld", { before: () => gate.promise });
    const asking = lease.isHeld();
    await lease.release();
    gate.resolve();
    expect(await asking).toBe(false);
    await clock.advance(0);
    expect(lease.status).toBe("released");
  });

  test("throws on a fault and leaves the lease as it was", async () => {
    const { lease, store } = await setUpLease();
    store.detour("isHeld", { before: failing() });
    await expect(lease.isHeld()).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation: "isHeld" });
    expect(lease.status).toBe("held");
    store.detour("isHeld", { answer: undefined });
    await expect(lease.isHeld()).rejects.toMatchObject({ code: "LOCK_STORE_FAULT" });
    expect(await lease.isHeld()).toBe(true);
  });
});

describe("Lease.extend", () => {
  test("sets what remains to the lock's TTL, counted from before the request left", async () => {
    const { lease, store, clock } = await setUpLease();
    await clock.advance(600);
    store.detour("extend", { before: () => clock.advance(50) });
    expect(await lease.extend()).toBe("extended");
    expect(lease.remainingMs()).toBe(950);
    expect(store.requests).toMatchObject([{ operation: "extend", ttlMs: 1_000 }]);
  });

  test("sets what remains to a TTL of its own, longer or shorter", async () => {
    const { lease, clock } = await setUpLease();
    expect(await lease.extend(5_000)).toBe("extended");
    expect(lease.remainingMs()).toBe(5_000);
    expect(await lease.extend(99.5)).toBe("extended");
    expect(lease.remainingMs()).toBe(100);
    await clock.advance(100);
    expect(lease.status).toBe("lost");
  });

  test("refuses a TTL that cannot be, before any request", async () => {
    const { lease, store } = await setUpLease();
    for (const ttlMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(lease.extend(ttlMs)).rejects.toMatchObject({ code: "LOCK_INVALID_OPTION", option: "ttlMs" });
    }
    expect(store.requests).toEqual([]);
    expect(lease.status).toBe("held");
  });

  test("says lost without asking once the lease has ended", async () => {
    const { lease, store, clock } = await setUpLease();
    await clock.advance(1_000);
    expect(await lease.extend()).toBe("lost");
    expect(store.requests).toEqual([]);
  });

  test("says lost when the store no longer knows the lease", async () => {
    const { lease, others, log } = await setUpLease();
    await others.forceRelease({ key: "k" });
    expect(await lease.extend()).toBe("lost");
    expect(lease.status).toBe("lost");
    expect(log).toHaveLength(1);
  });

  test("says lost when the answer comes after the deadline, and gives the lease back", async () => {
    const { lease, store, clock, others } = await setUpLease();
    store.detour("extend", { after: () => clock.advance(1_000) });
    expect(await lease.extend(60_000)).toBe("lost");
    expect(lease.status).toBe("lost");
    await clock.advance(0);
    expect(store.operations).toEqual(["extend", "release"]);
    expect(await others.acquire({ ...stranger("k"), ttlMs: 1 })).toEqual({ outcome: "granted" });
  });

  test("never turns an expired lease into a live one again", async () => {
    const { lease, store, clock } = await setUpLease();
    const gate = deferred();
    store.detour("extend", { after: () => gate.promise });
    const extending = lease.extend(60_000);
    await clock.advance(1_000);
    expect(lease.isExpired()).toBe(true);
    gate.resolve();
    expect(await extending).toBe("lost");
    expect(lease.isExpired()).toBe(true);
  });

  test("counts a shorter lifetime from the moment the request is out", async () => {
    const { lease, store, clock } = await setUpLease();
    const gate = deferred();
    store.detour("extend", { before: () => gate.promise });
    const extending = lease.extend(100);
    expect(lease.remainingMs()).toBe(100);
    await clock.advance(100);
    expect(lease.isExpired()).toBe(true);
    gate.resolve();
    expect(await extending).toBe("lost");
  });

  test("after a fault believes in the earlier of both deadlines", async () => {
    const { lease, store } = await setUpLease();
    store.detour("extend", { after: failing() });
    await expect(lease.extend(60_000)).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation: "extend" });
    expect(lease.remainingMs()).toBe(1_000);
    store.detour("extend", { after: failing() });
    await expect(lease.extend(300)).rejects.toMatchObject({ code: "LOCK_STORE_FAULT" });
    expect(lease.remainingMs()).toBe(300);
    expect(await lease.extend()).toBe("extended");
    expect(lease.remainingMs()).toBe(1_000);
  });

  test("takes turns: of two at once the later one decides", async () => {
    const { lease, store } = await setUpLease();
    const gate = deferred();
    store.detour("extend", { before: () => gate.promise });
    const both = Promise.all([lease.extend(5_000), lease.extend(3_000)]);
    expect(store.requests).toHaveLength(1);
    gate.resolve();
    expect(await both).toEqual(["extended", "extended"]);
    expect(lease.remainingMs()).toBe(3_000);
  });

  test("follows one that failed", async () => {
    const { lease, store } = await setUpLease();
    store.detour("extend", { before: failing() });
    const both = Promise.allSettled([lease.extend(5_000), lease.extend(3_000)]);
    expect(await both).toMatchObject([{ status: "rejected" }, { status: "fulfilled", value: "extended" }]);
  });

  test("cannot bring a released lease back, whichever was called first", async () => {
    const { lease, store, others } = await setUpLease();
    const gate = deferred();
    store.detour("extend", { before: () => gate.promise });
    const extending = lease.extend(60_000);
    const releasing = lease.release();
    const afterwards = lease.extend(60_000);
    gate.resolve();
    expect(await Promise.all([extending, releasing, afterwards])).toEqual(["lost", "released", "lost"]);
    expect(store.operations).toEqual(["extend", "release"]);
    expect(lease.status).toBe("released");
    expect(await others.acquire({ ...stranger("k"), ttlMs: 1 })).toEqual({ outcome: "granted" });
  });
});

describe("Lease.release", () => {
  test("frees the key, and says not-held without asking from then on", async () => {
    const { lease, store } = await setUpLease();
    expect(await Promise.all([lease.release(), lease.release()])).toEqual(["released", "not-held"]);
    expect(await lease.release()).toBe("not-held");
    expect(store.operations).toEqual(["release"]);
    expect(lease.status).toBe("released");
  });

  test("says not-held for a lease that the store no longer knew, which counts as lost", async () => {
    const { lease, others, warnings } = await setUpLease();
    await others.forceRelease({ key: "k" });
    await others.acquire({ ...stranger("k"), ttlMs: 60_000 });
    expect(await lease.release()).toBe("not-held");
    expect(lease.status).toBe("lost");
    expect(warnings()).toHaveLength(1);
    expect(await others.isHeld(stranger("k"))).toBe(true);
  });

  test("clears away in the store what its own clock holds for lapsed, and stays lost", async () => {
    const { lease, store, clock } = await setUpLease();
    store.detour("extend", { before: () => clock.advance(100), after: failing() });
    await expect(lease.extend(1_500)).rejects.toThrow();
    await clock.advance(900);
    expect(lease.status).toBe("lost");
    expect(await lease.release()).toBe("released");
    expect(lease.status).toBe("lost");
  });

  test("throws on a fault, and tries again when called again", async () => {
    const { lease, store } = await setUpLease();
    store.detour("release", { before: failing() });
    await expect(lease.release()).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation: "release" });
    expect(lease.status).toBe("released");
    expect(await lease.release()).toBe("released");
    expect(store.operations).toEqual(["release", "release"]);
  });
});

describe("await using", () => {
  test("releases the lease at the end of its scope", async () => {
    const { locks, store } = setUp();
    {
      await using lease = await locks.createLock("k").acquire();
      expect(lease.status).toBe("held");
    }
    expect(store.operations).toEqual(["acquire", "release"]);
  });

  test("sends nothing when the lease was released before", async () => {
    const { locks, store } = setUp();
    {
      await using lease = await locks.createLock("k").acquire();
      await lease.release();
    }
    expect(store.operations).toEqual(["acquire", "release"]);
  });

  test("lets the scope's error through, alone, when the release fails", async () => {
    const { locks, store, warnings } = setUp();
    store.detour("release", { before: failing() });
    const error = new Error("scope");
    const scope = async () => {
      await using _lease = await locks.createLock("k").acquire();
      throw error;
    };
    await expect(scope()).rejects.toBe(error);
    expect(store.operations).toEqual(["acquire", "release"]);
    expect(warnings()).toHaveLength(1);
  });

  test("does not throw because the lease had lapsed, and logs it", async () => {
    const { locks, clock, warnings } = setUp();
    {
      await using _lease = await locks.createLock("k").acquire();
      await clock.advance(5_000);
    }
    expect(warnings()).toHaveLength(1);
  });
});

describe("an owner token", () => {
  test("appears in no log line, no error and no printed lease", async () => {
    const { lease, store, clock, log } = await setUpLease();
    store.detour("extend", { before: failing() });
    const error = await lease.extend().catch((thrown: unknown) => thrown);
    await clock.advance(2_000);
    await lease.release();
    const owner = store.requests[0]?.owner as string;
    const printed = [
      inspect(lease, { depth: 9, showHidden: true }),
      inspect(new Set([lease]), { depth: 9, showHidden: true }),
      inspect(error),
      inspect(log, { depth: 9 }),
    ];
    expect(owner).toHaveLength(44);
    for (const text of printed) expect(text).not.toContain(owner);
  });
});
