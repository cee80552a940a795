import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LimitEvent } from "../../src/limits/events.ts";
import { RateLimit, type RateLimitOptions, WINDOW_MS } from "../../src/limits/rate-limit.ts";
import { redisCounts } from "../../src/limits/shared-counts.ts";

let nowMs = 1_000 * WINDOW_MS;

function limitOf(options: Partial<RateLimitOptions>): RateLimit {
  const defaults = { name: "check", shared: undefined, observe: () => {}, nowMs: () => nowMs } as const;
  return new RateLimit({ ...defaults, limit: 10, ...options });
}

/** How many of so many are let through. */
function passing(limit: RateLimit, { key = "key", times }: { key?: string; times: number }): number {
  return Array.from({ length: times }, () => limit.take(key)).filter((seconds) => seconds === undefined).length;
}

describe("RateLimit", () => {
  beforeEach(() => {
    nowMs += WINDOW_MS;
  });

  test("lets through as many as the limit says in a window, and as many in the next", () => {
    const limit = limitOf({});
    expect(passing(limit, { times: 50 })).toBe(10);
    nowMs += WINDOW_MS - 1;
    expect(passing(limit, { times: 1 })).toBe(0);
    nowMs += 1;
    expect(passing(limit, { times: 50 })).toBe(10);
  });

  test("counts each key for itself", () => {
    const limit = limitOf({});
    expect(passing(limit, { key: "a", times: 50 })).toBe(10);
    expect(passing(limit, { key: "b", times: 50 })).toBe(10);
  });

  test("says in how many seconds the window ends", () => {
    const limit = limitOf({ limit: 1 });
    nowMs += 12_300;
    expect([limit.take("key"), limit.take("key")]).toEqual([undefined, 48]);
    nowMs += WINDOW_MS - 12_301;
    expect(limit.refusal("key")).toBe(1);
  });

  test("a look does not count", () => {
    const limit = limitOf({ limit: 2 });
    for (let i = 0; i < 10; i++) expect(limit.refusal("key")).toBeUndefined();
    expect(passing(limit, { times: 10 })).toBe(2);
    expect(limit.refusal("key")).toBeGreaterThan(0);
  });
});

describe.skipIf(!hasRedis)("RateLimit with the counts in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url, { enableOfflineQueue: false, maxRetriesPerRequest: 0, socketTimeout: 500 });
    redis.on("error", () => {});
    await new Promise((resolve) => redis.once("ready", resolve));
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    nowMs += WINDOW_MS;
    await redis.flushall();
  });

  const commandCount = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1]);

  test("processes together let through the limit, and at most a tenth for each on top", async () => {
    const processes = Array.from({ length: 4 }, () => limitOf({ limit: 100, shared: redisCounts(redis, "p:") }));
    let passed = 0;
    for (let round = 0; round < 100; round++) {
      for (const limit of processes) passed += passing(limit, { times: 1 });
      await redis.ping();
    }
    expect(passed).toBeGreaterThanOrEqual(100);
    expect(passed).toBeLessThanOrEqual(140);
    const [key = ""] = await redis.keys("*");
    expect(key).toMatch(/^p:ota:limit:check:\d+:key$/);
    expect(await redis.pttl(key)).toBeGreaterThan(WINDOW_MS);
  });

  test("a device far below its limit costs Redis nothing", async () => {
    const limit = limitOf({ limit: 100, shared: redisCounts(redis, "") });
    const before = await commandCount();
    for (let key = 0; key < 50; key++) expect(passing(limit, { key: String(key), times: 10 })).toBe(10);
    await redis.ping();
    // The PING, and the INFO that comes next.
    expect((await commandCount()) - before).toBe(2);
    expect(await redis.dbsize()).toBe(0);
  });

  test("a device that is refused costs Redis nothing more", async () => {
    const limit = limitOf({ limit: 20, shared: redisCounts(redis, "") });
    passing(limit, { times: 30 });
    await redis.ping();
    const before = await commandCount();
    expect(passing(limit, { times: 1000 })).toBe(0);
    await redis.ping();
    expect((await commandCount()) - before).toBe(2);
  });

  test("with Redis hung or away each process limits by its own count, and waits for nothing", async () => {
    const events: LimitEvent[] = [];
    const limit = limitOf({ limit: 20, shared: redisCounts(redis, ""), observe: (event) => events.push(event) });
    server.pause();
    try {
      expect(passing(limit, { times: 50 })).toBe(20);
      await expect.poll(() => events.length, { timeout: 10_000 }).toBeGreaterThan(0);
    } finally {
      server.resume();
    }
    await expect.poll(() => redis.status, { timeout: 10_000 }).toBe("ready");
    expect(new Set(events.map(({ kind }) => kind))).toEqual(new Set(["not_shared"]));
  });
});
