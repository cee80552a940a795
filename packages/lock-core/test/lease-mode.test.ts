import type { LockStore } from "@ota/lock-core";
import { LockFactory } from "@ota/lock-core";
import { describe, expect, test } from "vitest";
import { deferred, failing, setUp, setUpFull } from "./support.ts";

/** A shared lease of 1 s on the key "k", in a world of its own. */
async function setUpReader(options: Parameters<typeof setUpFull>[0] = {}) {
  const world = setUpFull(options);
  const lease = await world.locks.createLock("k").acquire({ mode: "shared" });
  const readAsOther = (ttlMs = 60_000) => world.others.acquire({ key: "k", owner: "reader", ttlMs, mode: "shared" });
  const writeAsOther = () => world.others.acquire({ key: "k", owner: "writer", ttlMs: 60_000 });
  world.store.requests.length = 0;
  world.log.length = 0;
  return { ...world, lease, readAsOther, writeAsOther };
}

const GRANTED = { outcome: "granted" };
const CONTENDED = { outcome: "contended" };

describe("Lock in mode shared", () => {
  test("asks for it, and gives a lease of that mode", async () => {
    const { locks, store } = setUpFull();
    const lock = locks.createLock("k");
    const leases = [
      await lock.tryAcquire({ mode: "shared" }),
      await lock.acquire({ mode: "shared" }),
      await lock.run((lease) => lease, { mode: "shared" }),
    ];
    expect(leases.map((lease) => lease?.mode)).toEqual(["shared", "shared", "shared"]);
    expect(store.requests.slice(0, 3)).toMatchObject(Array.from({ length: 3 }, () => ({ mode: "shared" })));
    expect(await lock.tryAcquire()).toBeUndefined();
  });

  test("waits for the writer, and as a writer for the readers", async () => {
    const { locks, clock } = setUpFull();
    const lock = locks.createLock("k");
    const writer = await lock.acquire();
    const readers = [lock.acquire({ mode: "shared" }), lock.acquire({ mode: "shared" })];
    await clock.advance(200);
    await writer.release();
    await clock.advance(200);
    const [one, other] = await Promise.all(readers);
    const next = lock.acquire();
    await one?.release();
    await clock.advance(200);
    expect(other?.status).toBe("held");
    await other?.release();
    await clock.advance(200);
    expect((await next).mode).toBe("exclusive");
  });

  test("is refused when it is no mode", async () => {
    const { locks, store } = setUpFull();
    const wrong = { mode: "read" as never };
    await expect(locks.createLock("k").tryAcquire(wrong)).rejects.toThrow(/mode must be exclusive or shared/);
    expect(store.requests).toEqual([]);
  });

  test("is exclusive on a store without shared locks, and says so at debug level", async () => {
    const { locks, log } = setUp();
    const lease = await locks.createLock("k").acquire({ mode: "shared" });
    expect(lease.mode).toBe("exclusive");
    expect(log).toMatchObject([{ level: "debug", message: expect.stringContaining("no shared locks") }]);
    expect(await locks.createLock("k").tryAcquire({ mode: "shared" })).toBeUndefined();
  });
});

describe("Lease.promote", () => {
  test("makes the only reader a writer, with the lock's TTL or its own counted from before the request", async () => {
    const { lease, store, clock, readAsOther } = await setUpReader();
    await clock.advance(900);
    store.detour("promote", { before: () => clock.advance(50) });
    expect(await lease.promote()).toBe("promoted");
    expect([lease.mode, lease.remainingMs()]).toEqual(["exclusive", 950]);
    expect(await readAsOther()).toEqual(CONTENDED);
    expect(await lease.promote(5_000)).toBe("promoted");
    expect(lease.remainingMs()).toBe(5_000);
    expect(store.operations).toEqual(["promote", "promote"]);
  });

  test("beside another reader says contended, and leaves the lease its mode and its end", async () => {
    const { lease, clock, readAsOther, log } = await setUpReader();
    await readAsOther();
    await clock.advance(400);
    for (const ttlMs of [100, 60_000]) {
      expect(await lease.promote(ttlMs)).toBe("contended");
      expect([lease.mode, lease.status, lease.remainingMs()]).toEqual(["shared", "held", 600]);
    }
    expect(log).toEqual([]);
    expect(await lease.extend()).toBe("extended");
    expect(await lease.release()).toBe("released");
  });

  test("says lost without asking once the lease has ended, and never acquires anew", async () => {
    const { lease, store, clock, writeAsOther } = await setUpReader();
    await clock.advance(1_000);
    expect(await lease.promote()).toBe("lost");
    expect(store.requests).toEqual([]);
    expect(await writeAsOther()).toEqual(GRANTED);
  });

  test("says lost when the store no longer knows the lease", async () => {
    const { lease, others } = await setUpReader();
    await others.forceRelease({ key: "k" });
    expect(await lease.promote()).toBe("lost");
    expect(lease.status).toBe("lost");
  });

  test.each([true, false])(
    "says lost when the answer comes after the deadline, and gives the lease back (beside another reader: %s)",
    async (beside) => {
      const { lease, store, clock, others, readAsOther } = await setUpReader();
      if (beside) await readAsOther();
      store.detour("promote", { after: () => clock.advance(1_000) });
      expect(await lease.promote(60_000)).toBe("lost");
      await clock.advance(0);
      expect(store.operations).toEqual(["promote", "release"]);
      expect((await others.inspect({ key: "k" })).holders).toHaveLength(beside ? 1 : 0);
    },
  );

  test("refuses a TTL that cannot be, before any request", async () => {
    const { lease, store } = await setUpReader();
    await expect(lease.promote(0)).rejects.toMatchObject({ code: "LOCK_INVALID_OPTION" });
    await expect(lease.demote(Number.NaN)).rejects.toMatchObject({ code: "LOCK_INVALID_OPTION" });
    expect(store.requests).toEqual([]);
  });

  test("takes its turn after an extend, and before a release", async () => {
    const { lease, store, others } = await setUpReader();
    const gate = deferred();
    store.detour("extend", { before: () => gate.promise });
    const all = Promise.all([lease.extend(), lease.promote(), lease.release()]);
    expect(store.operations).toEqual(["extend"]);
    gate.resolve();
    expect(await all).toEqual(["lost", "lost", "released"]);
    expect(store.operations).toEqual(["extend", "release"]);
    expect(await others.inspect({ key: "k" })).toEqual({ mode: "free", holders: [] });
  });

  test("on an exclusive lease extends it", async () => {
    const { locks, clock } = setUpFull();
    const lease = await locks.createLock("k").acquire();
    await clock.advance(900);
    expect(await lease.promote()).toBe("promoted");
    expect([lease.mode, lease.remainingMs()]).toEqual(["exclusive", 1_000]);
  });
});

describe("Lease.promote that failed with its outcome unknown", () => {
  test("counts as not done, and the next extend takes the store back to a shared lease", async () => {
    const { lease, store, readAsOther } = await setUpReader();
    store.detour("promote", { after: failing() });
    await expect(lease.promote(60_000)).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation: "promote" });
    expect([lease.mode, lease.status, lease.remainingMs()]).toEqual(["shared", "held", 1_000]);
    expect(await readAsOther()).toEqual(CONTENDED);
    expect(await lease.extend()).toBe("extended");
    expect(await readAsOther()).toEqual(GRANTED);
    expect(await lease.extend()).toBe("extended");
    expect(store.operations).toEqual(["promote", "demote", "extend"]);
  });

  test("goes on being in doubt while the store does not answer", async () => {
    const { lease, store, readAsOther } = await setUpReader();
    store.detour("promote", { after: failing() });
    store.detour("demote", { before: failing() });
    await expect(lease.promote()).rejects.toThrow();
    await expect(lease.extend()).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation: "demote" });
    expect(await lease.extend()).toBe("extended");
    expect(await readAsOther()).toEqual(GRANTED);
  });

  test("may be asked again", async () => {
    const { lease, store } = await setUpReader();
    store.detour("promote", { after: failing() });
    await expect(lease.promote()).rejects.toThrow();
    expect(await lease.promote()).toBe("promoted");
    expect(await lease.extend()).toBe("extended");
    expect(lease.mode).toBe("exclusive");
    expect(store.operations).toEqual(["promote", "promote", "extend"]);
  });
});

describe("Lease.demote", () => {
  test("makes a writer a reader, and says lost for what has ended", async () => {
    const { locks, clock, others } = setUpFull();
    const lease = await locks.createLock("k").acquire();
    await clock.advance(900);
    expect(await lease.demote()).toBe("demoted");
    expect([lease.mode, lease.remainingMs()]).toEqual(["shared", 1_000]);
    expect(await others.acquire({ key: "k", owner: "reader", ttlMs: 1, mode: "shared" })).toEqual(GRANTED);
    expect(await lease.demote(500)).toBe("demoted");
    await clock.advance(500);
    expect(await lease.demote()).toBe("lost");
  });

  test("lets the lease count as shared from the moment the request is out, whatever becomes of it", async () => {
    const { locks, store, others } = setUpFull();
    const lease = await locks.createLock("k").acquire();
    const gate = deferred();
    store.detour("demote", { before: () => gate.promise });
    const demoting = lease.demote();
    expect(lease.mode).toBe("shared");
    gate.reject(new Error("no connection"));
    await expect(demoting).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation: "demote" });
    expect(lease.mode).toBe("shared");
    expect(await lease.extend()).toBe("extended");
    expect(await others.acquire({ key: "k", owner: "reader", ttlMs: 1, mode: "shared" })).toEqual(GRANTED);
  });
});

describe("promote and demote on a store without shared locks", () => {
  test("extend the lease, which stays exclusive", async () => {
    const { locks, store, clock } = setUp();
    const lease = await locks.createLock("k").acquire({ mode: "shared" });
    await clock.advance(500);
    expect([await lease.demote(), lease.mode, lease.remainingMs()]).toEqual(["demoted", "exclusive", 1_000]);
    await clock.advance(500);
    expect([await lease.promote(), lease.mode, lease.remainingMs()]).toEqual(["promoted", "exclusive", 1_000]);
    expect(store.operations).toEqual(["acquire", "extend", "extend"]);
    store.detour("extend", { after: failing() });
    await expect(lease.demote()).rejects.toMatchObject({ operation: "extend" });
    expect(lease.mode).toBe("exclusive");
    await clock.advance(1_000);
    expect([await lease.demote(), await lease.promote()]).toEqual(["lost", "lost"]);
  });
});

describe("answers that the contract does not know", () => {
  test.each([
    ["promote", undefined],
    ["promote", { outcome: "granted" }],
    ["promote", "promoted"],
    ["demote", "promoted"],
    ["demote", true],
  ] as const)("of %s are a LockStoreError: %j", async (operation, answer) => {
    const { lease, store } = await setUpReader();
    store.detour(operation, { answer });
    await expect(lease[operation]()).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation });
  });
});

describe("fencing tokens", () => {
  test("come with a lock that is made with fencing, and with no other", async () => {
    const { locks, store } = setUpFull();
    const plain = await locks.createLock("k").acquire();
    expect(plain.fencingToken).toBeUndefined();
    await plain.release();
    const fenced = await locks.createLock("k", { fencing: true }).acquire();
    expect(typeof fenced.fencingToken).toBe("bigint");
    expect(store.requests.map((request) => "fencing" in request && request.fencing)).toEqual([false, false, true]);
  });

  test("grow with each writer, are kept by extend and demote, and replaced by promote", async () => {
    const { locks } = setUpFull({ fencing: true });
    const lock = locks.createLock("k");
    const first = await lock.run((lease) => lease.fencingToken ?? 0n);
    const lease = await lock.acquire();
    const token = lease.fencingToken ?? 0n;
    expect(token).toBeGreaterThan(first);
    await lease.extend();
    await lease.demote();
    expect(lease.fencingToken).toBe(token);
    await lease.promote();
    expect(lease.fencingToken).toBeGreaterThan(token);
  });

  test("asked of a store that has none are a LockOptionsError at createLock", () => {
    const { locks, store } = setUp();
    expect(() => locks.createLock("k", { fencing: true })).toThrow(/observed store has no fencing tokens/);
    const factory = new LockFactory(store, { fencing: true });
    expect(() => factory.createLock("k")).toThrow(/fencing must be left out/);
    expect(() => locks.createLock("k", { fencing: 1 as never })).toThrow(/fencing must be true or false/);
  });

  test.each(["acquire", "promote"] as const)(
    "missing from the answer to %s are a LockStoreError",
    async (operation) => {
      const { locks, store } = setUpFull({ fencing: true });
      const lease = await locks.createLock("k").acquire({ mode: "shared" });
      const outcome = operation === "acquire" ? "granted" : "promoted";
      store.detour(operation, { answer: { outcome, fencingToken: 5 } });
      const asking = operation === "acquire" ? locks.createLock("other").acquire() : lease.promote();
      await expect(asking).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation });
    },
  );

  test("are told as they are in the error about an answer", async () => {
    const { locks, store } = setUpFull({ fencing: true });
    store.detour("acquire", { answer: { outcome: "taken", fencingToken: 5n } });
    await expect(locks.createLock("k").tryAcquire()).rejects.toThrow(/"fencingToken":"5n"/);
  });
});

describe("a store behind another", () => {
  test("shows its capabilities by its methods alone", async () => {
    const { locks, store, others } = setUpFull();
    const wrapped: LockStore = {
      name: "wrapped",
      reach: "shared",
      acquire: (request) => store.acquire(request),
      extend: (request) => store.extend(request),
      release: (request) => store.release(request),
      isHeld: (request) => store.isHeld(request),
    };
    const bare = new LockFactory(wrapped);
    await expect(bare.inspect("k")).rejects.toMatchObject({ code: "LOCK_INVALID_OPTION", option: "store" });
    await expect(bare.forceRelease("k")).rejects.toMatchObject({ code: "LOCK_INVALID_OPTION", option: "store" });
    const full = new LockFactory({
      ...wrapped,
      promote: others.promote.bind(others),
      demote: others.demote.bind(others),
    } as LockStore);
    expect((await full.createLock("k").acquire({ mode: "shared" })).mode).toBe("shared");
    expect(await locks.inspect("k")).toMatchObject({ mode: "shared" });
  });
});
