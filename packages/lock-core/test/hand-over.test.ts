import { LockFactory, MemoryStore } from "@ota/lock-core";
import { describe, expect, test } from "vitest";
import { failing, setUp, setUpFull } from "./support.ts";

/** A lease of 1 s on "k" and its JSON; the factory that restores it lives on the same store. */
async function setUpGiven(options: Parameters<typeof setUpFull>[0] = {}, mode: "exclusive" | "shared" = "exclusive") {
  const world = setUpFull(options);
  const lease = await world.locks.createLock("k").acquire({ mode });
  const json = JSON.stringify(lease);
  world.store.requests.length = 0;
  return { ...world, lease, json, fields: JSON.parse(json) };
}

describe("Lease.toJSON", () => {
  test("carries version, key, owner, mode, deadline and fence", async () => {
    const from = Date.now();
    const { lease, fields, store } = await setUpGiven({ fencing: true });
    await lease.release();
    expect(fields).toEqual({
      version: 1,
      key: "k",
      owner: store.requests[0]?.owner,
      mode: "exclusive",
      deadlineMs: expect.any(Number),
      fencingToken: String(lease.fencingToken),
    });
    expect(fields.deadlineMs).toBeGreaterThanOrEqual(from + 1_000);
    expect(fields.deadlineMs).toBeLessThanOrEqual(Date.now() + 1_000);
  });

  test("has no fence where the lease has none", async () => {
    expect(Object.keys((await setUpGiven()).fields)).not.toContain("fencingToken");
  });

  test("refuses a lease of one process", async () => {
    const lease = await setUp().locks.createLock("k").acquire();
    expect(() => JSON.stringify(lease)).toThrow(/store must be one that other processes share/);
  });

  test("refuses a lease that has ended", async () => {
    const { lease, clock } = await setUpGiven();
    await clock.advance(1_000);
    expect(() => lease.toJSON()).toThrow(expect.objectContaining({ code: "LOCK_LOST" }));
  });
});

describe("LockFactory.restore", () => {
  test("takes text or its parsed form, confirms it with one request, and gives a lease of the factory's TTL", async () => {
    const { locks, json, fields, store, clock } = await setUpGiven();
    await clock.advance(900);
    for (const given of [json, fields]) {
      const restored = await locks.restore(given);
      expect([restored?.key, restored?.mode, restored?.remainingMs()]).toEqual(["k", "exclusive", 1_000]);
    }
    expect(store.requests).toMatchObject(Array.from({ length: 2 }, () => ({ ttlMs: 1_000, owner: fields.owner })));
  });

  test("takes a TTL of its own, which later extends keep", async () => {
    const { locks, json, store } = await setUpGiven();
    const restored = await locks.restore(json, { ttlMs: 5_000 });
    await restored?.extend();
    expect(store.requests.map(({ ttlMs }) => ttlMs)).toEqual([5_000, 5_000]);
  });

  test("gives a lease that extends and releases as the first one did", async () => {
    const { locks, json, lease, others } = await setUpGiven();
    const restored = await locks.restore(json);
    expect([await restored?.extend(), await restored?.isHeld(), await restored?.release()]).toEqual([
      "extended",
      true,
      "released",
    ]);
    expect(await lease.isHeld()).toBe(false);
    expect(await others.inspect({ key: "k" })).toEqual({ mode: "free", holders: [] });
  });

  test("gives undefined for a lease that lapsed or was released, and leaves its key free", async () => {
    const { locks, json, lease, clock, others } = await setUpGiven();
    await lease.release();
    expect(await locks.restore(json)).toBeUndefined();
    const later = JSON.stringify(await locks.createLock("k").acquire());
    await clock.advance(1_000);
    expect(await locks.restore(later)).toBeUndefined();
    expect(await others.inspect({ key: "k" })).toEqual({ mode: "free", holders: [] });
  });

  test("gives undefined when the answer comes too late, and gives the lease back", async () => {
    const { locks, json, store, clock, others } = await setUpGiven();
    store.detour("promote", { after: () => clock.advance(1_000) });
    expect(await locks.restore(json)).toBeUndefined();
    await clock.advance(0);
    expect(await others.inspect({ key: "k" })).toEqual({ mode: "free", holders: [] });
  });

  test("keeps a shared lease shared, beside others", async () => {
    const { locks, json, others } = await setUpGiven({}, "shared");
    await others.acquire({ key: "k", owner: "reader", ttlMs: 60_000, mode: "shared" });
    const restored = await locks.restore(json);
    expect(restored?.mode).toBe("shared");
    expect(await restored?.promote()).toBe("contended");
  });

  test("never takes for exclusive what its giver has demoted since: exclusive again when alone, else undefined", async () => {
    const { locks, json, lease, others } = await setUpGiven();
    await lease.demote();
    expect((await locks.restore(json))?.mode).toBe("exclusive");
    expect((await others.inspect({ key: "k" })).mode).toBe("exclusive");
    await lease.demote();
    await others.acquire({ key: "k", owner: "reader", ttlMs: 60_000, mode: "shared" });
    expect(await locks.restore(json)).toBeUndefined();
    expect(await others.inspect({ key: "k" })).toMatchObject({ mode: "shared", holders: [{}, {}] });
  });

  test("keeps the fencing token, without the lock being made anew", async () => {
    const given = await setUpGiven({ fencing: true });
    const plainFactory = new LockFactory(given.store, { clock: given.clock });
    const restored = await plainFactory.restore(given.json);
    expect(restored?.fencingToken).toBe(given.lease.fencingToken);
    await restored?.demote();
    await restored?.promote();
    expect(restored?.fencingToken).toBeGreaterThan(given.lease.fencingToken as bigint);
    const shared = await setUpGiven({ fencing: true }, "shared");
    expect((await shared.locks.restore(shared.json))?.fencingToken).toBe(shared.lease.fencingToken);
  });

  test("throws on a fault and can be tried again", async () => {
    const { locks, json, store } = await setUpGiven();
    store.detour("promote", { before: failing() });
    await expect(locks.restore(json)).rejects.toMatchObject({ code: "LOCK_STORE_FAULT" });
    expect((await locks.restore(json))?.status).toBe("held");
  });

  test("refuses to restore on a store of one process, which could not have given it", async () => {
    const { json } = await setUpGiven();
    await expect(new LockFactory(new MemoryStore()).restore(json)).rejects.toMatchObject({ option: "store" });
  });

  test.each([
    ["no JSON", "{"],
    ["JSON of something else", "[]"],
    ["null", "null"],
    ["a number", 5],
    ["nothing", undefined],
    ["no version", { version: undefined }],
    ["another version", { version: 2 }],
    ["no key", { key: undefined }],
    ["a key of another type", { key: 5 }],
    ["a key that no store keeps", { key: "a\ud800" }],
    ["no owner", { owner: undefined }],
    ["an empty owner", { owner: "" }],
    ["the reserved marker as its owner", { owner: "__write__" }],
    ["an owner that no store keeps", { owner: "a\ud800" }],
    ["no mode", { mode: undefined }],
    ["another mode", { mode: "read" }],
    ["no deadline", { deadlineMs: undefined }],
    ["a deadline that is no number", { deadlineMs: "soon" }],
    ["a fencing token that is a number", { fencingToken: 5 }],
    ["a fencing token that is no number", { fencingToken: "abc" }],
    ["a fencing token of zero", { fencingToken: "0" }],
    ["a fencing token that is too long", { fencingToken: "12345678901234567890" }],
  ])("refuses %s before any request, and tells no owner token", async (_what, given) => {
    const { locks, fields, store } = await setUpGiven();
    const lease = typeof given === "object" ? { ...fields, ...given } : given;
    const error = await locks.restore(lease as never).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "LOCK_INVALID_OPTION" });
    expect(`${error} ${JSON.stringify(error)}`).not.toContain(fields.owner);
    expect(store.requests).toEqual([]);
  });

  test("does not tell the owner token of text that was cut off", async () => {
    const { locks, json, fields } = await setUpGiven();
    const error = await locks.restore(json.slice(0, -1)).catch((thrown: unknown) => thrown);
    expect(`${error} ${JSON.stringify(error)}`).not.toContain(fields.owner.slice(0, 8));
  });

  test("ignores what a later version has added", async () => {
    const { locks, fields } = await setUpGiven();
    expect((await locks.restore({ ...fields, added: "later" }))?.status).toBe("held");
  });

  test("refuses options that are not known", async () => {
    const { locks, json } = await setUpGiven();
    await expect(locks.restore(json, { ttl: 5 } as never)).rejects.toThrow(/ttl must be left out/);
  });
});

describe("LockFactory.inspect and forceRelease", () => {
  test("show and free a key, and log who was cut off as a warning", async () => {
    const { locks, lease, warnings } = await setUpGiven();
    expect(await locks.inspect("k")).toEqual({ mode: "exclusive", holders: [{ remainingMs: 1_000 }] });
    expect([await locks.forceRelease("k"), await locks.forceRelease("k")]).toEqual(["released", "not-held"]);
    expect(warnings()).toEqual(["A lock was released by force."]);
    expect(await lease.extend()).toBe("lost");
    expect(await locks.inspect("k")).toEqual({ mode: "free", holders: [] });
  });

  test("refuse a key that is none, and pass on faults as lock errors", async () => {
    const { locks, store } = await setUpGiven();
    await expect(locks.inspect(5 as never)).rejects.toMatchObject({ option: "key" });
    await expect(locks.forceRelease("\ud800")).rejects.toMatchObject({ option: "key" });
    expect(store.requests).toEqual([]);
    for (const operation of ["inspect", "forceRelease"] as const) {
      store.detour(operation, { before: failing() });
      await expect(locks[operation]("k")).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation });
      store.detour(operation, { answer: "free" });
      await expect(locks[operation]("k")).rejects.toMatchObject({ code: "LOCK_STORE_FAULT", operation });
    }
  });
});
