import { inspect } from "node:util";
import {
  LockError,
  LockKeyConflictError,
  LockLostError,
  LockOptionsError,
  LockStoreError,
  LockTimeoutError,
} from "@ota/lock-core";
import { describe, expect, test } from "vitest";
import { setUp } from "./support.ts";

const cause = new Error("ECONNRESET");
const errors = [
  new LockTimeoutError({ key: "k", waitedMs: 99.6, attempts: 3 }),
  new LockLostError({ key: "k", reason: "its lifetime was over" }),
  new LockStoreError({ key: "k", store: "redis", operation: "isHeld", reason: "no answer", cause }),
  new LockKeyConflictError({ key: "k", found: "a hash" }),
  new LockOptionsError({ option: "ttlMs", value: 0, expected: "more" }),
];

describe("lock errors", () => {
  test("have stable codes and names", () => {
    expect(errors.map(({ name, code }) => [name, code])).toEqual([
      ["LockTimeoutError", "LOCK_TIMEOUT"],
      ["LockLostError", "LOCK_LOST"],
      ["LockStoreError", "LOCK_STORE_FAULT"],
      ["LockKeyConflictError", "LOCK_KEY_CONFLICT"],
      ["LockOptionsError", "LOCK_INVALID_OPTION"],
    ]);
    for (const error of errors) {
      expect(error).toBeInstanceOf(LockError);
      expect(String(error)).toMatch(new RegExp(`^${error.name}: `));
    }
  });

  test("say what happened, to which key, and what to do", () => {
    expect(errors.map(({ message }) => message)).toEqual([
      'Lock "k" was still held by someone else after 100 ms and 3 attempt(s). Try again later, or wait longer with waitTimeoutMs or maxAttempts.',
      'The lease on "k" was lost: its lifetime was over. Check what the protected work has written, and give it a longer ttlMs or extend the lease while it works.',
      'The redis lock store could not look up "k": no answer',
      'The key "k" holds a hash, which is no lock. It was left untouched: use another key, or a key prefix of your own.',
      "ttlMs must be more, but was 0.",
    ]);
  });

  test("carry the cause where there is one, and no empty one else", () => {
    expect(errors.map((error) => error.cause)).toEqual([undefined, undefined, cause, undefined, undefined]);
    expect(errors.map((error) => "cause" in error)).toEqual([false, false, true, false, false]);
  });

  test("stay one readable line, whatever the key", () => {
    const { message } = new LockTimeoutError({ key: `a\nb${"x".repeat(10_000)}`, waitedMs: 1, attempts: 1 });
    expect(message).not.toContain("\n");
    expect(message.length).toBeLessThan(400);
  });

  test("show a refused value without dumping it", () => {
    const shown = ["x".repeat(500), 5n, { secret: "s3cret" }, Object.create(null), undefined, Symbol("s")].map(
      (value) => new LockOptionsError({ option: "o", value, expected: "e" }).message,
    );
    for (const message of shown) expect(message.length).toBeLessThan(200);
    expect(shown.join()).not.toContain("s3cret");
  });

  test("are recognised by their code when they come from another copy of the package", async () => {
    const { locks, store } = setUp();
    const foreign = Object.assign(new Error("held by a hash"), { code: "LOCK_KEY_CONFLICT" });
    store.detour("acquire", { before: () => Promise.reject(foreign) });
    await expect(locks.createLock("k").tryAcquire()).rejects.toBe(foreign);
  });

  test("print with their name first", () => {
    expect(inspect(errors[0])).toMatch(/^LockTimeoutError: Lock "k"/);
  });
});
