import {
  CombinedStore,
  LockFactory,
  LockKeyConflictError,
  LockOptionsError,
  LockQuorumError,
  type LockStore,
  LockStoreError,
  MemoryState,
  MemoryStore,
} from "@ota/lock-core";
import { ManualClock, storeContract } from "@ota/lock-core/testing";
import { describe, expect, test } from "vitest";
import { deferred, failing, ObservedStore, stranger } from "./support.ts";

const mine = { key: "k", owner: "mine" };
const lease = { ...mine, ttlMs: 10_000 };

/** So many memory stores, each with its own state, watched, and combined. */
function setUp(count: number, strategy: "consensus" | "unanimous" = "consensus") {
  const clock = new ManualClock();
  const states = Array.from({ length: count }, () => new MemoryState({ clock }));
  const plain = states.map((state) => new MemoryStore({ state }));
  const parts = plain.map((store) => new SharingObservedStore(store));
  const combined = new CombinedStore(parts, { strategy, storeTimeoutMs: 100, clock });
  const held = async () => (await Promise.all(plain.map((store) => store.isHeld(mine)))).map(Number).join("");
  const part = (index: number) => parts[index] as SharingObservedStore;
  /** Somebody else's hold on some of the stores. */
  const occupy = async (...indices: number[]) => {
    for (const index of indices) await plain[index]?.acquire({ ...stranger("k"), ttlMs: 60_000 });
  };
  return { clock, plain, combined, held, part, occupy };
}

class SharingObservedStore extends ObservedStore {
  readonly #shared: MemoryStore;

  constructor(store: MemoryStore) {
    super(store);
    this.#shared = store;
  }

  promote(request: Parameters<MemoryStore["promote"]>[0]) {
    return this.passing("promote", request, () => this.#shared.promote(request));
  }

  demote(request: Parameters<MemoryStore["demote"]>[0]) {
    return this.passing("demote", request, () => this.#shared.demote(request));
  }
}

describe.each([
  { count: 1, strategy: "consensus" },
  { count: 3, strategy: "consensus" },
  { count: 4, strategy: "consensus" },
  { count: 3, strategy: "unanimous" },
] as const)("CombinedStore over $count memory stores, $strategy", ({ count, strategy }) => {
  const clock = new ManualClock();
  const states = Array.from({ length: count }, () => new MemoryState({ clock }));
  const combine = () =>
    new CombinedStore(
      states.map((state) => new MemoryStore({ state })),
      { strategy, clock },
    );
  const stores = [combine(), combine()] as const;
  const elapse = (ms: number) => clock.advance(ms);
  for (const { rule, title, run } of storeContract({ stores: () => stores, claims: ["shared"], clock, elapse })) {
    test(`rule ${rule}: ${title}`, run);
  }
});

describe("CombinedStore over stores of which one has no shared locks", () => {
  const clock = new ManualClock();
  const states = Array.from({ length: 3 }, () => new MemoryState({ clock }));
  const combine = () =>
    new CombinedStore(
      states.map((state, index) =>
        index === 0 ? new ObservedStore(new MemoryStore({ state })) : new MemoryStore({ state }),
      ),
      { clock },
    );
  const stores = [combine(), combine()] as const;
  for (const { rule, title, run } of storeContract({
    stores: () => stores,
    clock,
    elapse: (ms) => clock.advance(ms),
  })) {
    test(`rule ${rule}: ${title}`, run);
  }
});

test("a combination grants exclusively in every store when one of them cannot share", async () => {
  const combined = new CombinedStore([new ObservedStore(new MemoryStore()), new MemoryStore(), new MemoryStore()]);
  expect(await combined.acquire({ ...lease, mode: "shared" })).toEqual({ outcome: "granted" });
  expect(await combined.acquire({ ...lease, ...stranger("k"), mode: "shared" })).toEqual({ outcome: "contended" });
});

describe("what CombinedStore takes", () => {
  const refusal = (stores: readonly LockStore[], options = {}) => {
    try {
      new CombinedStore(stores, options);
    } catch (error) {
      return error instanceof LockOptionsError ? error.option : error;
    }
    return "none";
  };

  test("is one store or more, each once", () => {
    const store = new MemoryStore();
    expect(refusal([])).toBe("stores");
    expect(refusal([store, new MemoryStore(), store])).toBe("stores");
    expect(refusal([store, {} as LockStore])).toBe("store");
    expect(refusal([store])).toBe("none");
  });

  test("is a known strategy, a timeout and a factor below 1", () => {
    const stores = [new MemoryStore()];
    expect(refusal(stores, { strategy: "majority" })).toBe("strategy");
    expect(refusal(stores, { storeTimeoutMs: 0 })).toBe("storeTimeoutMs");
    expect(refusal(stores, { driftFactor: 1 })).toBe("driftFactor");
    expect(refusal(stores, { quorum: 2 })).toBe("quorum");
  });

  test("is no lock with fencing", () => {
    const locks = new LockFactory(new CombinedStore([new MemoryStore()]));
    expect(() => locks.createLock("k", { fencing: true })).toThrow(LockOptionsError);
  });

  test("reaches as far as the store that reaches least", () => {
    expect(new CombinedStore([new MemoryStore(), new MemoryStore()]).reach).toBe("process");
  });
});

describe("CombinedStore.acquire", () => {
  test("asks all stores, with one token", async () => {
    const { combined, part } = setUp(3);
    expect(await combined.acquire(lease)).toEqual({ outcome: "granted" });
    for (const index of [0, 1, 2]) expect(part(index).requests).toMatchObject([{ operation: "acquire", ...lease }]);
  });

  test("is granted by more than half, while a minority fails, is silent or is held", async () => {
    for (const spoil of [
      ({ part }: ReturnType<typeof setUp>) => part(1).detour("acquire", { before: failing() }),
      ({ part }: ReturnType<typeof setUp>) => part(1).detour("acquire", { before: () => deferred().promise }),
      ({ occupy }: ReturnType<typeof setUp>) => occupy(1),
    ]) {
      const world = setUp(3);
      await spoil(world);
      expect(await world.combined.acquire(lease)).toEqual({ outcome: "granted" });
      expect(await world.combined.isHeld(mine)).toBe(true);
    }
  });

  test("does not wait for stores that cannot change the answer", async () => {
    const { combined, part, occupy } = setUp(3);
    await occupy(0, 1);
    part(2).detour("acquire", { before: () => deferred().promise });
    expect(await combined.acquire(lease)).toEqual({ outcome: "contended" }); // the clock stands still

    const failed = setUp(3);
    for (const index of [0, 1]) failed.part(index).detour("acquire", { before: failing() });
    failed.part(2).detour("acquire", { before: () => deferred().promise });
    await expect(failed.combined.acquire(lease)).rejects.toMatchObject({ code: "LOCK_QUORUM" });
  });

  test("is contended when others hold what it needs, and leaves nothing", async () => {
    const { combined, occupy, held } = setUp(3);
    await occupy(0, 1);
    expect(await combined.acquire(lease)).toEqual({ outcome: "contended" });
    expect(await held()).toBe("000");
  });

  test("ends with an even split, leaving nothing", async () => {
    const { combined, occupy, held } = setUp(4);
    await occupy(0, 1);
    expect(await combined.acquire(lease)).toEqual({ outcome: "contended" });
    expect(await held()).toBe("0000");
  });

  test("stays contention when one of three fails and the others are split", async () => {
    const { combined, occupy, part, held } = setUp(3);
    await occupy(0);
    part(1).detour("acquire", { before: failing() });
    expect(await combined.acquire(lease)).toEqual({ outcome: "contended" });
    expect(await held()).toBe("000");
  });

  test("throws a LockQuorumError with what each store said when too many fail, and leaves nothing", async () => {
    const { combined, part, held } = setUp(3);
    part(0).detour("acquire", { before: failing("down") });
    part(2).detour("acquire", { after: failing("cut") });
    const error = await combined.acquire(lease).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockQuorumError);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ code: "LOCK_QUORUM", key: "k", operation: "acquire", quorum: 2 });
    const { votes, message } = error as LockQuorumError;
    expect(votes.map(({ outcome, error: fault }) => outcome ?? fault?.code)).toEqual([
      "LOCK_STORE_FAULT",
      "granted",
      "LOCK_STORE_FAULT",
    ]);
    expect(message).toMatch(/2 of 3 stores have to agree.*1 \(observed\).*down.*2 \(observed\): granted.*cut/s);
    expect(message).not.toContain(mine.owner);
    await part(2).isHeld(mine);
    expect(await held()).toBe("000");
  });

  test("waits for silent stores no longer than its timeout", async () => {
    const { combined, part, clock, held } = setUp(3);
    for (const index of [1, 2]) part(index).detour("acquire", { before: () => deferred().promise });
    const acquiring = combined.acquire(lease).catch((error: unknown) => error);
    await clock.advance(99);
    expect(await Promise.race([acquiring, Promise.resolve("waits")])).toBe("waits");
    await clock.advance(1);
    expect(await acquiring).toMatchObject({
      code: "LOCK_QUORUM",
      message: expect.stringContaining("within 100 ms"),
      votes: [{ outcome: "granted" }, { error: {} }, { error: {} }],
    });
    expect(await held()).toBe("000");
  });

  test("tells a store that grants too late to release", async () => {
    const { combined, part, clock, held } = setUp(3);
    const gate = deferred();
    part(0).detour("acquire", { before: () => gate.promise });
    part(1).detour("acquire", { before: failing() });
    const acquiring = combined.acquire(lease).catch((error: unknown) => error);
    await clock.advance(100);
    expect(await acquiring).toMatchObject({ code: "LOCK_QUORUM" });
    gate.resolve();
    await clock.advance(0);
    expect(part(0).operations).toEqual(["acquire", "release"]);
    expect(await held()).toBe("000");
  });

  test("needs every store when it is to be unanimous", async () => {
    const { combined, occupy, part, held } = setUp(3, "unanimous");
    part(2).detour("acquire", { before: failing() });
    await expect(combined.acquire(lease)).rejects.toMatchObject({ code: "LOCK_QUORUM" });
    expect(await held()).toBe("000");
    await occupy(1);
    expect(await combined.acquire(lease)).toEqual({ outcome: "contended" });
    expect(await held()).toBe("000");
  });

  test("passes on what all failed stores agree on: a foreign key is no failing store", async () => {
    const { combined, part } = setUp(3);
    const conflict = () => Promise.reject(new LockKeyConflictError({ key: "k", found: "a list" }));
    for (const index of [0, 1]) part(index).detour("acquire", { before: conflict });
    await expect(combined.acquire(lease)).rejects.toBeInstanceOf(LockKeyConflictError);
  });
});

test("a quorum that is not to be had ends every wait on the key", async () => {
  const { combined, part, clock, occupy } = setUp(3);
  await occupy(0, 1);
  const lock = new LockFactory(combined, { clock }).createLock("k");
  const waits = Promise.allSettled([lock.acquire(), lock.acquire()]);
  await clock.advance(0);
  for (const index of [0, 1]) part(index).detour("acquire", { before: failing() });
  await clock.advance(200);
  expect(await waits).toMatchObject([{ reason: { code: "LOCK_QUORUM" } }, { reason: { code: "LOCK_QUORUM" } }]);
});

describe("a lease of a CombinedStore", () => {
  test("counts on its TTL less what clocks may drift, from before the request left", async () => {
    const { combined, part, clock } = setUp(3);
    const locks = new LockFactory(combined, { clock, ttlMs: 10_000 });
    for (const index of [0, 1]) part(index).detour("acquire", { before: () => clock.advance(20) });
    const acquired = await locks.createLock("k").tryAcquire();
    expect(acquired?.remainingMs()).toBe(10_000 - 100 - 2 - clock.now());
    expect(clock.now()).toBeGreaterThan(0);
    const before = clock.now();
    for (const index of [0, 1]) part(index).detour("extend", { before: () => clock.advance(20) });
    expect(await acquired?.extend(1_000)).toBe("extended");
    expect(acquired?.remainingMs()).toBe(1_000 - 10 - 2 - (clock.now() - before));
  });

  test("is extended by a quorum, and lost without one", async () => {
    const { combined, plain, held } = setUp(3);
    await combined.acquire(lease);
    await plain[0]?.forceRelease({ key: "k" });
    expect(await combined.extend(lease)).toBe("extended");
    await plain[1]?.forceRelease({ key: "k" });
    expect(await combined.isHeld(mine)).toBe(false);
    expect(await combined.extend(lease)).toBe("lost");
    expect(await held()).toBe("000");
  });

  test("is neither lost nor kept when faults leave that open", async () => {
    const { combined, part } = setUp(3);
    await combined.acquire(lease);
    for (const operation of ["extend", "isHeld", "release"] as const) {
      for (const index of [0, 2]) part(index).detour(operation, { before: failing() });
    }
    await expect(combined.extend(lease)).rejects.toMatchObject({ code: "LOCK_QUORUM", operation: "extend" });
    await expect(combined.isHeld(mine)).rejects.toMatchObject({ code: "LOCK_QUORUM", operation: "isHeld" });
    await expect(combined.release(mine)).rejects.toMatchObject({ code: "LOCK_QUORUM", operation: "release" });
  });

  test("is released in every store, also in one that has not answered its acquire yet", async () => {
    const { combined, part, clock, held } = setUp(3);
    const gate = deferred();
    part(2).detour("acquire", { before: () => gate.promise });
    expect(await combined.acquire(lease)).toEqual({ outcome: "granted" });
    expect(await combined.release(mine)).toBe("released");
    expect(part(2).operations).toEqual(["acquire"]);
    gate.resolve();
    await clock.advance(0);
    expect(part(2).operations).toEqual(["acquire", "release"]);
    expect(await held()).toBe("000");
  });

  test("is promoted by a quorum; refused, it stays shared everywhere", async () => {
    const { combined, plain, held } = setUp(3);
    await combined.acquire({ ...lease, mode: "shared" });
    for (const index of [0, 1]) await plain[index]?.acquire({ ...stranger("k"), ttlMs: 60_000, mode: "shared" });
    expect(await combined.promote(lease)).toEqual({ outcome: "contended" });
    const modes = await Promise.all(plain.map(async (store) => (await store.inspect({ key: "k" })).mode));
    expect([modes, await held()]).toEqual([["shared", "shared", "shared"], "111"]);
    await plain[1]?.release(stranger("k"));
    expect(await combined.promote(lease)).toEqual({ outcome: "promoted" });
  });

  test("is not told to be contended when nobody contends: a failed promotion is a fault", async () => {
    const { combined, plain, part } = setUp(3);
    await combined.acquire({ ...lease, mode: "shared" });
    await plain[2]?.forceRelease({ key: "k" });
    part(0).detour("promote", { before: failing() });
    await expect(combined.promote(lease)).rejects.toMatchObject({ code: "LOCK_QUORUM", operation: "promote" });
  });

  test("is not extended any more in a store that was busy until the others had decided", async () => {
    const { combined, part, clock } = setUp(3);
    const gate = deferred();
    part(2).detour("acquire", { before: () => gate.promise });
    await combined.acquire(lease);
    expect(await combined.extend(lease)).toBe("extended");
    gate.resolve();
    await clock.advance(0);
    expect(part(2).operations).toEqual(["acquire"]);
  });

  test("is in doubt when a refused promotion cannot be undone", async () => {
    const { combined, plain, part } = setUp(3);
    await combined.acquire({ ...lease, mode: "shared" });
    for (const index of [0, 1]) await plain[index]?.acquire({ ...stranger("k"), ttlMs: 60_000, mode: "shared" });
    part(2).detour("demote", { before: failing() });
    await expect(combined.promote(lease)).rejects.toMatchObject({ code: "LOCK_QUORUM", operation: "promote" });
  });

  test("is demoted by a quorum, and others may join then", async () => {
    const { combined, plain } = setUp(3);
    await combined.acquire(lease);
    await plain[0]?.forceRelease({ key: "k" });
    expect(await combined.demote(lease)).toBe("demoted");
    expect(await combined.acquire({ ...stranger("k"), ttlMs: 1_000, mode: "shared" })).toEqual({ outcome: "granted" });
    expect(await combined.acquire({ key: "k", owner: "writer", ttlMs: 1_000 })).toEqual({ outcome: "contended" });
  });
});

test("a combination of combinations counts on the least that any of them does", () => {
  const inner = new CombinedStore([new MemoryStore()], { driftFactor: 0.1 });
  const outer = new CombinedStore([inner, new MemoryStore()], { driftFactor: 0 });
  expect(outer.validityMs(1_000)).toBe(1_000 - 100 - 2 - 2);
  expect(outer.validityMs(2)).toBe(0);
});
