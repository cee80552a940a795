import { hasFakeTime, hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, newKey, newOwner, pause, stored } from "./support.ts";

describe.skipIf(!hasRedis)("the lifetime that RedisStore grants", () => {
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

  it("is never shorter than the TTL, not even by a part of a millisecond", async () => {
    const ttlMs = 60_000;
    for (let round = 0; round < 60; round++) {
      const [key, owner, reader] = [newKey(), newOwner(), newKey()];
      // One transaction holds the server's clock to the microsecond and what was granted after it.
      const asked = redis.multi().time();
      await pause(Math.random());
      const before = (await asked.exec())?.[0]?.[1] as [string, string];
      const [seconds, micros] = before.map(Number) as [number, number];
      const end = async (at: string) => Number((await stored(redis, at)).members[owner]);
      await store.acquire({ key, owner, ttlMs });
      await store.acquire({ key: reader, owner, ttlMs, mode: "shared" });
      const least = seconds * 1000 + micros / 1000 + ttlMs;
      expect(await end(key)).toBeGreaterThanOrEqual(least);
      expect(await end(reader)).toBeGreaterThanOrEqual(least);
    }
  });
});

describe.skipIf(!hasRedis)("the remaining time that an inspection tells", () => {
  it("is never longer than the TTL, not even by a part of a millisecond", async () => {
    await using server = await startRedis();
    const redis = await connect(server.url);
    const store = new RedisStore(redis);
    const ttlMs = 60_000;
    const told = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const key = newKey();
        // They leave in one write, so that they come within one millisecond.
        const [, inspected] = await Promise.all([
          store.acquire({ key, owner: newOwner(), ttlMs }),
          store.inspect({ key }),
        ]);
        return inspected.holders[0]?.remainingMs ?? 0;
      }),
    );
    expect(Math.max(...told)).toBeLessThanOrEqual(ttlMs);
    expect(Math.min(...told)).toBeGreaterThan(ttlMs - 5_000);
    redis.disconnect();
  });
});

const STOPPED = Date.parse("2030-01-02T03:04:05Z");

describe.skipIf(!hasRedis || !hasFakeTime)("RedisStore by the clock of the server", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;
  beforeAll(async () => {
    server = await startRedis({ adjustableClock: true });
    redis = await connect(server.url);
    store = new RedisStore(redis);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  const stopAt = (ms: number) => server.setClock({ stoppedAt: new Date(ms) });

  it("a lease is over in the very millisecond of its end, and not before", async () => {
    const [key, owner, rival] = [newKey(), newOwner(), newOwner()];
    stopAt(STOPPED);
    await store.acquire({ key, owner, ttlMs: 5_001 });
    expect((await stored(redis, key)).members[owner]).toBe(String(STOPPED + 5_001));
    stopAt(STOPPED + 5_000); // One millisecond is left.
    expect(await store.isHeld({ key, owner })).toBe(true);
    expect(await store.acquire({ key, owner: rival, ttlMs: 5_000 })).toEqual({ outcome: "contended" });
    expect(await store.extend({ key, owner, ttlMs: 5_000 })).toBe("extended"); // Till STOPPED + 10,000.
    stopAt(STOPPED + 10_000);
    expect(await store.isHeld({ key, owner })).toBe(false);
    expect(await store.extend({ key, owner, ttlMs: 5_000 })).toBe("lost");
    expect(await store.promote({ key, owner, ttlMs: 5_000 })).toEqual({ outcome: "lost" });
    expect(await store.demote({ key, owner, ttlMs: 5_000 })).toBe("lost");
    expect(await store.acquire({ key, owner: rival, ttlMs: 5_000 })).toEqual({ outcome: "granted" });
    expect(await store.release({ key, owner })).toBe("not-held");
  });

  it("ends each reader's lease in its own millisecond", async () => {
    const [key, one, two] = [newKey(), newOwner(), newOwner()];
    stopAt(STOPPED);
    await store.acquire({ key, owner: one, ttlMs: 1_000, mode: "shared" });
    await store.acquire({ key, owner: two, ttlMs: 2_000, mode: "shared" });
    stopAt(STOPPED + 1_000);
    expect(await store.isHeld({ key, owner: one })).toBe(false);
    expect(await store.isHeld({ key, owner: two })).toBe(true);
    expect(await store.promote({ key, owner: two, ttlMs: 1_000 })).toEqual({ outcome: "promoted" });
  });

  it("a clock that goes forward ends leases early, and one that goes back late: nobody else gets in meanwhile", async () => {
    const [key, owner] = [newKey(), newOwner()];
    server.setClock({ offsetMs: 0 });
    await store.acquire({ key, owner, ttlMs: 60_000 });
    server.setClock({ offsetMs: -3_600_000 });
    expect(await store.isHeld({ key, owner })).toBe(true);
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: 60_000 })).toEqual({ outcome: "contended" });
    expect(await store.extend({ key, owner, ttlMs: 60_000 })).toBe("extended"); // By the new clock from now on.
    server.setClock({ offsetMs: 3_600_000 });
    expect(await store.isHeld({ key, owner })).toBe(false);
    expect(await store.extend({ key, owner, ttlMs: 60_000 })).toBe("lost");
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: 60_000 })).toEqual({ outcome: "granted" });
  });

  it("fencing tokens go on growing when the clock goes back, and when the counter is lost and the clock goes forward", async () => {
    const key = newKey();
    const mint = async () => {
      const owner = newOwner();
      const grant = await store.acquire({ key, owner, ttlMs: 60_000, fencing: true });
      await store.release({ key, owner });
      return (grant as { readonly fencingToken: bigint }).fencingToken;
    };
    server.setClock({ offsetMs: 0 });
    const first = await mint();
    server.setClock({ offsetMs: -3_600_000 });
    const second = await mint();
    expect(second).toBe(first + 1n);
    server.setClock({ offsetMs: 0 });
    await redis.del(`{${key}}:fence`);
    expect(await mint()).toBeGreaterThan(second);
  });
});
