import { LockFactory, LockOptionsError, MAX_TTL_MS, MemoryStore } from "@ota/lock-core";
import { describe, expect, test } from "vitest";
import { setUp } from "./support.ts";

const NOT_DURATIONS = [-1, Number.NaN, Number.POSITIVE_INFINITY, MAX_TTL_MS + 1, "5", 5n, null, {}, true] as never[];

describe("ttlMs", () => {
  test("is 30 seconds by default", async () => {
    const { locks } = setUp({ ttlMs: undefined });
    expect((await locks.createLock("k").acquire()).remainingMs()).toBe(30_000);
  });

  test("comes from the lock, else from the factory", async () => {
    const { locks } = setUp({ ttlMs: 700 });
    expect((await locks.createLock("a").acquire()).remainingMs()).toBe(700);
    expect((await locks.createLock("b", { ttlMs: 900 }).acquire()).remainingMs()).toBe(900);
    expect((await locks.createLock("c", { ttlMs: undefined }).acquire()).remainingMs()).toBe(700);
  });

  test("is rounded up to whole milliseconds", async () => {
    const { locks, store } = setUp();
    for (const ttlMs of [0.001, 1.5, MAX_TTL_MS - 0.5]) await locks.createLock(`${ttlMs}`, { ttlMs }).acquire();
    expect(store.requests.map(({ ttlMs }) => ttlMs)).toEqual([1, 2, MAX_TTL_MS]);
  });

  test("is refused where no lease could live so long, by factory and lock alike", () => {
    const { locks } = setUp();
    for (const ttlMs of [0, ...NOT_DURATIONS]) {
      expect(() => locks.createLock("k", { ttlMs })).toThrow(LockOptionsError);
      expect(() => new LockFactory(new MemoryStore(), { ttlMs })).toThrow(LockOptionsError);
    }
  });
});

describe("wait options", () => {
  test("are refused where no wait could follow them", () => {
    const { locks } = setUp();
    for (const value of NOT_DURATIONS) {
      expect(() => locks.createLock("k", { waitTimeoutMs: value })).toThrow(/waitTimeoutMs must be/);
      expect(() => locks.createLock("k", { retryDelayMs: value })).toThrow(/retryDelayMs must be/);
    }
    for (const value of [0, 1.5, 2 ** 53, ...NOT_DURATIONS.filter((one) => one !== MAX_TTL_MS + 1)]) {
      expect(() => locks.createLock("k", { maxAttempts: value })).toThrow(/maxAttempts must be/);
    }
    expect(() => locks.createLock("k", { retryDelayMs: 0 })).toThrow(/retryDelayMs must be/);
    expect(() => locks.createLock("k", { waitTimeoutMs: 0, retryDelayMs: 0.5, maxAttempts: 1 })).not.toThrow();
  });
});

describe("an option that is not known", () => {
  test("is refused with the names that are, never ignored", async () => {
    const { locks, store } = setUp();
    const misspelt = { ttl: 5_000 } as never;
    expect(() => locks.createLock("k", misspelt)).toThrow(
      "ttl must be left out: the options here are ttlMs, fencing, autoExtend, maxHoldMs, waitTimeoutMs, maxAttempts, retryDelayMs, but was 5000.",
    );
    expect(() => new LockFactory(store, misspelt)).toThrow(LockOptionsError);
    await expect(locks.createLock("k").acquire(misspelt)).rejects.toThrow(LockOptionsError);
    await expect(locks.createLock("k").tryAcquire({ waitTimeoutMs: 5 } as never)).rejects.toThrow(/waitTimeoutMs must/);
    expect(store.requests).toEqual([]);
  });

  test("is harmless while it is undefined", () => {
    expect(() => setUp().locks.createLock("k", { other: undefined } as never)).not.toThrow();
  });

  test("may not be a value in place of the options object", () => {
    for (const value of [5_000, "5s", null] as never[]) {
      expect(() => setUp().locks.createLock("k", value)).toThrow(/options must be an object of ttlMs/);
    }
  });
});

describe("a key", () => {
  test("may be any well-formed string", async () => {
    const { locks } = setUp();
    for (const key of ["", " ", "\n", "ключ 🔑", "{}", "x".repeat(100_000)]) {
      expect((await locks.createLock(key).tryAcquire())?.key).toBe(key);
    }
  });

  test("is refused where backends would not tell it from another", () => {
    for (const key of ["\ud800", "a\udc00b", undefined, null, 5, ["k"]] as never[]) {
      expect(() => setUp().locks.createLock(key)).toThrow(/key must be a string without lone surrogates/);
    }
  });
});

describe("what a factory is made with", () => {
  test("is refused where it has not the methods that are needed", () => {
    for (const store of [undefined, null, {}, "redis://", { acquire() {}, release() {} }] as never[]) {
      expect(() => new LockFactory(store)).toThrow(/store must be an object with the methods acquire/);
    }
    const store = new MemoryStore();
    expect(() => new LockFactory(store, { clock: Date as never })).toThrow(
      /clock must be an object with the methods now/,
    );
    expect(() => new LockFactory(store, { logger: {} as never })).toThrow(/logger must be/);
    expect(() => new LockFactory(store, { logger: console })).not.toThrow();
  });
});
