import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, newKey, newOwner, pause, serverNow, stored } from "./support.ts";

describe.skipIf(!hasRedis)("what RedisStore keeps in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;

  beforeAll(async () => {
    server = await startRedis();
    redis = await connect(server.url);
    store = new RedisStore(redis);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  /** Runs `operation` and gives its result and the bounds of the server's clock around it: ends of leases are rounded up. */
  async function timed<T>(operation: () => Promise<T>) {
    const from = await serverNow(redis);
    const result = await operation();
    return { result, from, to: (await serverNow(redis)) + 1 };
  }

  it("a granted lock is exactly the owner and the marker with one score, and the key ends with it", async () => {
    const [key, owner] = [newKey(), newOwner()];
    const { result, from, to } = await timed(() => store.acquire({ key, owner, ttlMs: 10_000 }));
    expect(result).toEqual({ outcome: "granted" });
    const { members, expiresAt } = await stored(redis, key);
    expect(Object.keys(members).sort()).toEqual([owner, "__write__"].sort());
    expect(members[owner]).toMatch(/^\d{13}$/);
    expect(members["__write__"]).toBe(members[owner]);
    expect(expiresAt).toBe(Number(members[owner]));
    expect(expiresAt).toBeGreaterThanOrEqual(from + 10_000);
    expect(expiresAt).toBeLessThanOrEqual(to + 10_000);
  });

  it("the longest TTL is stored in plain digits", async () => {
    const [key, owner] = [newKey(), newOwner()];
    await store.acquire({ key, owner, ttlMs: 315_360_000_000 });
    const { members, expiresAt } = await stored(redis, key);
    expect(members[owner]).toMatch(/^\d{13}$/);
    expect(expiresAt).toBe(Number(members[owner]));
  });

  it("a refused acquire leaves members, scores and the end of the key as they were", async () => {
    const [key, owner] = [newKey(), newOwner()];
    await store.acquire({ key, owner, ttlMs: 10_000 });
    const before = await stored(redis, key);
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: 99_000 })).toEqual({ outcome: "contended" });
    expect(await stored(redis, key)).toEqual(before);
  });

  it("acquire by the owner again sets the TTL anew, and one release still frees the key", async () => {
    const [key, owner] = [newKey(), newOwner()];
    await store.acquire({ key, owner, ttlMs: 60_000 });
    const { result, to } = await timed(() => store.acquire({ key, owner, ttlMs: 5_000 }));
    expect(result).toEqual({ outcome: "granted" });
    const { members, expiresAt } = await stored(redis, key);
    expect(Object.keys(members)).toHaveLength(2);
    expect(members["__write__"]).toBe(members[owner]);
    expect(expiresAt).toBeLessThanOrEqual(to + 5_000);
    expect(await store.release({ key, owner })).toBe("released");
    expect(await redis.exists(key)).toBe(0);
  });

  it.each([20_000, 2_000])("extend to %i ms moves owner, marker and key together", async (ttlMs) => {
    const [key, owner] = [newKey(), newOwner()];
    await store.acquire({ key, owner, ttlMs: 10_000 });
    const { result, from, to } = await timed(() => store.extend({ key, owner, ttlMs }));
    expect(result).toBe("extended");
    const { members, expiresAt } = await stored(redis, key);
    expect(members["__write__"]).toBe(members[owner]);
    expect(expiresAt).toBe(Number(members[owner]));
    expect(expiresAt).toBeGreaterThanOrEqual(from + ttlMs);
    expect(expiresAt).toBeLessThanOrEqual(to + ttlMs);
  });

  it("extend and release by another owner change nothing", async () => {
    const [key, owner, other] = [newKey(), newOwner(), newOwner()];
    await store.acquire({ key, owner, ttlMs: 10_000 });
    const before = await stored(redis, key);
    expect(await store.extend({ key, owner: other, ttlMs: 5_000 })).toBe("lost");
    expect(await store.release({ key, owner: other })).toBe("not-held");
    expect(await store.isHeld({ key, owner: other })).toBe(false);
    expect(await stored(redis, key)).toEqual(before);
  });

  it("release leaves no key behind, and a second one says not-held", async () => {
    const [key, owner] = [newKey(), newOwner()];
    await store.acquire({ key, owner, ttlMs: 10_000 });
    expect(await store.release({ key, owner })).toBe("released");
    expect(await redis.exists(key)).toBe(0);
    expect(await store.release({ key, owner })).toBe("not-held");
    expect(await redis.exists(key)).toBe(0);
  });

  it("a lease of 50 ms ends by itself, and nothing revives it", async () => {
    const [key, owner] = [newKey(), newOwner()];
    await store.acquire({ key, owner, ttlMs: 50 });
    expect(await store.isHeld({ key, owner })).toBe(true);
    await pause(70);
    expect(await redis.exists(key)).toBe(0);
    expect(await store.isHeld({ key, owner })).toBe(false);
    expect(await store.extend({ key, owner, ttlMs: 1_000 })).toBe("lost");
    expect(await store.release({ key, owner })).toBe("not-held");
    expect(await redis.exists(key)).toBe(0);
  });

  it("isHeld writes nothing", async () => {
    const [key, owner] = [newKey(), newOwner()];
    const past = (await serverNow(redis)) - 1_000;
    await redis.zadd(key, past, "lapsed", past + 100_000, owner);
    expect(await store.isHeld({ key, owner })).toBe(true);
    expect(await store.isHeld({ key, owner: "lapsed" })).toBe(false);
    expect(Object.keys((await stored(redis, key)).members)).toEqual(["lapsed", owner]);
  });

  it.each([
    ["empty", ""],
    ["with spaces and line breaks", "a b\r\nc\n"],
    ["with braces and a star", "{a}b}{*"],
    ["unicode", "ключ-鍵-🔑"],
    ["with a NUL", "a\0b"],
    ["10,000 characters long", "k".repeat(10_000)],
  ])("the key is the caller's, byte for byte: %s", async (_what, key) => {
    const owner = newOwner();
    await store.acquire({ key, owner, ttlMs: 10_000 });
    expect(await redis.type(Buffer.from(key, "utf8"))).toBe("zset");
    expect(await store.release({ key, owner })).toBe("released");
  });

  it("keyPrefix goes in front of the key, as it is", async () => {
    const [key, owner] = [newKey(), newOwner()];
    const prefixed = new RedisStore(redis, { keyPrefix: "app:" });
    await prefixed.acquire({ key, owner, ttlMs: 10_000 });
    expect(await redis.exists(`app:${key}`, key)).toBe(1);
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: 10_000 })).toEqual({ outcome: "granted" });
    expect(await store.acquire({ key: `app:${key}`, owner: newOwner(), ttlMs: 10_000 })).toEqual({
      outcome: "contended",
    });
  });

  it("an owner token of any kind is a member as it is", async () => {
    for (const owner of ["0", "a b\n", "🔑", "1e5", "(1", "x".repeat(1_000)]) {
      const key = newKey();
      await store.acquire({ key, owner, ttlMs: 10_000 });
      expect(Object.keys((await stored(redis, key)).members)).toContain(owner);
      expect(await store.release({ key, owner })).toBe("released");
    }
  });
});
