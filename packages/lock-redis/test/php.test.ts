import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { hasPhpLock, PhpPeer } from "./php-peer.ts";
import { connect, newKey, newOwner, pause, stored } from "./support.ts";

const GRANTED = { outcome: "granted" };
const CONTENDED = { outcome: "contended" };

describe.skipIf(!hasRedis || !hasPhpLock)("RedisStore and symfony/lock in PHP", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;
  let php: PhpPeer;
  let key: string;
  let owner: string;

  beforeAll(async () => {
    server = await startRedis();
    redis = await connect(server.url);
    store = new RedisStore(redis);
    php = new PhpPeer(server);
  });
  afterAll(async () => {
    await php.stop();
    redis.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    key = newKey();
    owner = newOwner();
  });

  it("a lock held in Node refuses PHP's acquire, acquireRead, refresh and isAcquired, until it is released", async () => {
    await store.acquire({ key, owner, ttlMs: 10_000 });
    const before = await stored(redis, key);
    expect(await php.ask({ do: "acquire", lock: key })).toBe(false);
    expect(await php.ask({ do: "acquireRead", lock: key })).toBe(false);
    expect(await php.ask({ do: "refresh", lock: key, ttl: 20 })).toBe("conflicted");
    expect(await php.ask({ do: "isAcquired", lock: key })).toBe(false);
    await php.ask({ do: "release", lock: key });
    expect(await stored(redis, key)).toEqual(before);
    await store.release({ key, owner });
    expect(await php.ask({ do: "acquire", lock: key })).toBe(true);
  });

  it("a lock held in PHP refuses Node's acquire, extend, release and isHeld, until it is released", async () => {
    expect(await php.ask({ do: "acquire", lock: key })).toBe(true);
    const before = await stored(redis, key);
    expect(await store.acquire({ key, owner, ttlMs: 10_000 })).toEqual(CONTENDED);
    expect(await store.extend({ key, owner, ttlMs: 10_000 })).toBe("lost");
    expect(await store.release({ key, owner })).toBe("not-held");
    expect(await store.isHeld({ key, owner })).toBe(false);
    expect(await stored(redis, key)).toEqual(before);
    await php.ask({ do: "release", lock: key });
    expect(await store.acquire({ key, owner, ttlMs: 10_000 })).toEqual(GRANTED);
  });

  it("a lock of Node is stored as one of PHP is", async () => {
    expect(await php.ask({ do: "acquire", lock: key })).toBe(true);
    const token = (await php.ask({ do: "token", lock: key })) as string;
    const theirs = await stored(redis, key);
    await store.acquire({ key: `${key}:node`, owner: token, ttlMs: 10_000 });
    const ours = await stored(redis, `${key}:node`);
    expect(Object.keys(ours.members)).toEqual(Object.keys(theirs.members));
    const shape = ({ members, expiresAt }: typeof ours) =>
      Object.values(members).map((score) => Number(score) - expiresAt);
    expect(shape(ours)).toEqual(shape(theirs));
    expect(await redis.object("ENCODING", `${key}:node`)).toBe(await redis.object("ENCODING", key));
  });

  it("readers of PHP refuse Node until the last one has left", async () => {
    expect(await php.ask({ do: "acquireRead", lock: key })).toBe(true);
    expect(await store.acquire({ key, owner, ttlMs: 10_000 })).toEqual(CONTENDED);
    await php.ask({ do: "release", lock: key });
    expect(await store.acquire({ key, owner, ttlMs: 10_000 })).toEqual(GRANTED);
  });

  it("a lock taken in PHP is extended and released in Node by its token", async () => {
    await php.ask({ do: "acquire", lock: key });
    const token = (await php.ask({ do: "token", lock: key })) as string;
    expect(await store.isHeld({ key, owner: token })).toBe(true);
    expect(await store.extend({ key, owner: token, ttlMs: 30_000 })).toBe("extended");
    expect(await php.ask({ do: "isAcquired", lock: key })).toBe(true);
    expect(await store.release({ key, owner: token })).toBe("released");
    expect(await php.ask({ do: "isAcquired", lock: key })).toBe(false);
  });

  it("a lock taken in Node is refreshed and released in PHP by its token", async () => {
    await store.acquire({ key, owner, ttlMs: 10_000 });
    await php.ask({ do: "adopt", lock: key, token: owner });
    expect(await php.ask({ do: "isAcquired", lock: key })).toBe(true);
    await php.ask({ do: "refresh", lock: key, ttl: 30 });
    const { members, expiresAt } = await stored(redis, key);
    expect(members).toEqual({ [owner]: String(expiresAt), __write__: String(expiresAt) });
    expect(await store.isHeld({ key, owner })).toBe(true);
    await php.ask({ do: "release", lock: key });
    expect(await store.isHeld({ key, owner })).toBe(false);
    expect(await redis.exists(key)).toBe(0);
  });

  it("a lease that lapsed on one side is free on the other", async () => {
    await store.acquire({ key, owner, ttlMs: 60 });
    await pause(80);
    expect(await php.ask({ do: "acquire", lock: key, ttl: 0.06 })).toBe(true);
    await pause(80);
    expect(await store.acquire({ key, owner, ttlMs: 10_000 })).toEqual(GRANTED);
  });

  it("a PHP waiter that has waited for longer than its store's initialTtl fails as it gets the lock, and leaves it free", async () => {
    await store.acquire({ key, owner, ttlMs: 10_000 });
    const waiting = php.ask({ do: "wait", lock: key, initialTtl: 0.2 });
    await pause(400);
    await store.release({ key, owner });
    expect(await waiting).toContain("LockAcquiringException");
    expect(await store.acquire({ key, owner, ttlMs: 10_000 })).toEqual(GRANTED);
  });

  it("two PHP processes and two Node stores that count under one lock lose no count", async () => {
    const counter = `${key}:counter`;
    const times = 40;
    const other = new PhpPeer(server);
    const second = await connect(server.url);
    const count = async (client: Redis) => {
      const mine = new RedisStore(client);
      for (let done = 0; done < times; ) {
        const claim = { key, owner: newOwner() };
        if ((await mine.acquire({ ...claim, ttlMs: 10_000 })).outcome === "contended") {
          await pause(1);
          continue;
        }
        const value = Number((await client.get(counter)) ?? 0);
        await client.set(counter, value + 1);
        await mine.release(claim);
        done += 1;
      }
    };
    await Promise.all([
      count(redis),
      count(second),
      php.ask({ do: "count", lock: key, counter, times }),
      other.ask({ do: "count", lock: key, counter, times }),
    ]);
    expect(await redis.get(counter)).toBe(String(4 * times));
    second.disconnect();
    await other.stop();
  });
});
