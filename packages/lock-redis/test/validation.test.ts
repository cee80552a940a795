import { LockOptionsError, MAX_TTL_MS } from "@ota/lock-core";
import { describe, expect, it } from "vitest";
import { type RedisClient, RedisStore } from "../src/index.ts";
import { failure, newOwner } from "./support.ts";

/** Stands for a connection over which nothing may be sent. */
const untouchable: RedisClient = {
  evalsha: () => Promise.reject(new Error("a request was sent")),
  eval: () => Promise.reject(new Error("a request was sent")),
};
const operations = ["acquire", "extend", "release", "isHeld"] as const;

describe("what RedisStore refuses before anything is sent", () => {
  const store = new RedisStore(untouchable);

  describe.each(operations)("%s", (operation) => {
    it.each([
      ["the empty string", ""],
      ["the marker of a write lock", "__write__"],
      ["lone surrogates", "\ud800"],
      ["something that is no string", 7 as unknown as string],
    ])("%s as the owner", async (_what, owner) => {
      const error = await failure(store[operation]({ key: "k", owner, ttlMs: 1_000 }));
      expect(error).toBeInstanceOf(LockOptionsError);
      expect(error).toMatchObject({ option: "owner", key: "k" });
    });

    it.each([
      ["the key that symfony/lock overwrites", "symfony_check_support_time"],
      ["that key behind a prefix", "app:symfony_check_support_time"],
      ["lone surrogates, which would all become one key", "a\udfff"],
      ["something that is no string", undefined as unknown as string],
    ])("%s as the key", async (_what, key) => {
      const error = await failure(store[operation]({ key, owner: newOwner(), ttlMs: 1_000 }));
      expect(error).toBeInstanceOf(LockOptionsError);
      expect(error).toMatchObject({ option: "key" });
    });
  });

  it("a key that becomes the one that symfony/lock overwrites by our own prefix", async () => {
    const prefixed = new RedisStore(untouchable, { keyPrefix: "symfony_check_" });
    const error = await failure(prefixed.acquire({ key: "support_time", owner: newOwner(), ttlMs: 1_000 }));
    expect(error).toBeInstanceOf(LockOptionsError);
  });

  describe.each(["acquire", "extend"] as const)("%s", (operation) => {
    it.each([0, -1, 0.5, 1.5, Number.NaN, Number.POSITIVE_INFINITY, MAX_TTL_MS + 1, "10" as unknown as number])(
      "a TTL of %s",
      async (ttlMs) => {
        const error = await failure(store[operation]({ key: "k", owner: newOwner(), ttlMs }));
        expect(error).toBeInstanceOf(LockOptionsError);
        expect(error).toMatchObject({ option: "ttlMs", value: ttlMs });
      },
    );
  });

  it("the owner token is not shown in the refusal of one", async () => {
    const error = await failure(store.isHeld({ key: "k", owner: "secret\ud800" }));
    expect(JSON.stringify(error) + String(error)).not.toContain("secret");
  });
});

describe("new RedisStore", () => {
  it.each([
    ["nothing", undefined],
    ["a URL", "redis://127.0.0.1"],
    ["a client of another library", { evalSha: () => {}, eval: () => {} }],
  ])("refuses %s as the client", (_what, client) => {
    expect(() => new RedisStore(client as unknown as RedisClient)).toThrow(LockOptionsError);
  });

  it.each([0, -5, 1.5, Number.NaN, 2 ** 31])("refuses a commandTimeoutMs of %s", (commandTimeoutMs) => {
    expect(() => new RedisStore(untouchable, { commandTimeoutMs })).toThrow(/commandTimeoutMs must be an integer/);
  });

  it("refuses an option that it does not know", () => {
    expect(() => new RedisStore(untouchable, { prefix: "app:" } as object)).toThrow(/prefix must be left out/);
  });

  it("refuses a keyPrefix that UTF-8 cannot express", () => {
    expect(() => new RedisStore(untouchable, { keyPrefix: "\ud800:" })).toThrow(/keyPrefix must be/);
  });
});
