import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { hasPhpLock, PhpPeer } from "./php-peer.ts";
import { connect, newKey, newOwner, pause, serverNow, stored } from "./support.ts";

const GRANTED = { outcome: "granted" };
const CONTENDED = { outcome: "contended" };
const PROMOTED = { outcome: "promoted" };

describe.skipIf(!hasRedis || !hasPhpLock)("shared locks of RedisStore and of symfony/lock in PHP", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;
  let php: PhpPeer;
  let lock: string;
  let owned: { key: string; owner: string };

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
    lock = newKey();
    owned = { key: lock, owner: newOwner() };
  });

  const read = (ttlMs = 10_000, owner = owned.owner) => store.acquire({ key: lock, owner, ttlMs, mode: "shared" });
  const write = (owner = newOwner()) => store.acquire({ key: lock, owner, ttlMs: 10_000 });
  const members = async () => Object.keys((await stored(redis, lock)).members).sort();
  const phpToken = () => php.ask({ do: "token", lock }) as Promise<string>;

  it("readers of both sides are there at once, and writers of either side wait for the last", async () => {
    expect(await php.ask({ do: "acquireRead", lock })).toBe(true);
    expect(await read()).toEqual(GRANTED);
    expect(await php.ask({ do: "acquireRead", lock, as: "second" })).toBe(true);
    const both = await stored(redis, lock);
    expect(Object.keys(both.members)).toHaveLength(3);
    expect(Object.keys(both.members)).not.toContain("__write__");
    expect(both.expiresAt).toBe(Math.max(...Object.values(both.members).map(Number)));

    expect(await write()).toEqual(CONTENDED);
    expect(await php.ask({ do: "acquire", lock, as: "writer" })).toBe(false);
    await php.ask({ do: "release", lock });
    await store.release(owned);
    expect(await write()).toEqual(CONTENDED);
    await php.ask({ do: "release", lock, as: "second" });
    expect(await write()).toEqual(GRANTED);
  });

  it("a reader of Node alone keeps PHP's writer out, and a reader of PHP alone Node's", async () => {
    await read();
    expect(await php.ask({ do: "acquire", lock })).toBe(false);
    await store.release(owned);
    expect(await php.ask({ do: "acquireRead", lock })).toBe(true);
    expect(await write()).toEqual(CONTENDED);
  });

  it("a writer of either side refuses the readers of the other", async () => {
    await write(owned.owner);
    expect(await php.ask({ do: "acquireRead", lock })).toBe(false);
    await store.release(owned);
    expect(await php.ask({ do: "acquire", lock })).toBe(true);
    expect(await read()).toEqual(CONTENDED);
  });

  it("Node's promotion beside a reader of PHP is refused and changes nothing; it succeeds once that has left", async () => {
    await read();
    await php.ask({ do: "acquireRead", lock });
    const before = await stored(redis, lock);
    expect(await store.promote({ ...owned, ttlMs: 20_000 })).toEqual(CONTENDED);
    expect(await stored(redis, lock)).toEqual(before);
    await php.ask({ do: "release", lock });
    expect(await store.promote({ ...owned, ttlMs: 20_000 })).toEqual(PROMOTED);
    expect(await members()).toEqual([owned.owner, "__write__"].sort());
    expect(await php.ask({ do: "acquireRead", lock })).toBe(false);
  });

  it("PHP's promotion beside a reader of Node is refused and PHP stays a reader; it succeeds once that has left", async () => {
    await php.ask({ do: "acquireRead", lock });
    await read();
    expect(await php.ask({ do: "acquire", lock })).toBe(false);
    expect(await php.ask({ do: "isAcquired", lock })).toBe(true);
    await store.release(owned);
    expect(await php.ask({ do: "acquire", lock })).toBe(true);
    expect(await members()).toEqual([await phpToken(), "__write__"].sort());
    expect(await read()).toEqual(CONTENDED);
  });

  it("a demotion on either side lets readers of the other in, and no writer", async () => {
    await write(owned.owner);
    expect(await store.demote({ ...owned, ttlMs: 10_000 })).toBe("demoted");
    expect(await php.ask({ do: "acquire", lock })).toBe(false);
    expect(await php.ask({ do: "acquireRead", lock })).toBe(true);
    await store.release(owned);

    expect(await php.ask({ do: "acquire", lock })).toBe(true);
    expect(await php.ask({ do: "acquireRead", lock })).toBe(true);
    expect(await write()).toEqual(CONTENDED);
    expect(await read()).toEqual(GRANTED);
  });

  it("a reader that lapsed on one side stands in the way of no promotion on the other", async () => {
    await read();
    await php.ask({ do: "acquireRead", lock, ttl: 0.06 });
    await pause(80);
    expect(await store.promote({ ...owned, ttlMs: 10_000 })).toEqual(PROMOTED);
    await store.release(owned);

    await php.ask({ do: "acquireRead", lock });
    await read(60);
    await pause(80);
    expect(await php.ask({ do: "acquire", lock })).toBe(true);
  });

  it("PHP revives a lapsed reader while one of Node is there, and counts for Node again; Node revives none", async () => {
    await read(60);
    await php.ask({ do: "acquireRead", lock, ttl: 0.06 });
    const other = newOwner();
    await read(10_000, other);
    await pause(80);
    expect(await store.extend({ ...owned, ttlMs: 10_000 })).toBe("lost");
    // The extend has pruned the lapsed members. PHP puts itself back by asking anew, as it does after any loss.
    expect(await php.ask({ do: "refresh", lock, ttl: 10 })).toBe("conflicted");
    await php.ask({ do: "acquireRead", lock, ttl: 0.06 });
    await pause(80);
    expect(await php.ask({ do: "refresh", lock, ttl: 10 })).toBe(null);
    expect(await store.promote({ key: lock, owner: other, ttlMs: 10_000 })).toEqual(CONTENDED);
  });

  it("a lock that PHP has saved and not yet refreshed counts for 300 s, as a writer's and as a reader's", async () => {
    const end = async () => (await stored(redis, lock)).expiresAt - (await serverNow(redis));
    await php.ask({ do: "save", lock });
    expect(Math.abs((await end()) - 300_000)).toBeLessThan(2_000);
    expect(await read()).toEqual(CONTENDED);
    await php.ask({ do: "refresh", lock, ttl: 10 });
    expect(Math.abs((await end()) - 10_000)).toBeLessThan(2_000);
    expect(await read()).toEqual(CONTENDED);
    await php.ask({ do: "release", lock });

    await php.ask({ do: "saveRead", lock });
    expect(await read()).toEqual(GRANTED);
    expect(await store.promote({ ...owned, ttlMs: 10_000 })).toEqual(CONTENDED);
    expect(Math.abs((await end()) - 300_000)).toBeLessThan(2_000);
    await php.ask({ do: "release", lock });
    expect(Math.abs((await end()) - 10_000)).toBeLessThan(2_000);
  });

  it("states that nobody's script makes are read alike: a fractional score, a string, a marker without owner", async () => {
    const now = await serverNow(redis);
    await redis.zadd(lock, String(now + 20_000.5), "someone");
    expect(await write()).toEqual(CONTENDED);
    expect(await php.ask({ do: "acquire", lock })).toBe(false);
    await redis.del(lock);

    await redis.set(lock, "someone");
    expect([await write(), await read()]).toEqual([CONTENDED, CONTENDED]);
    expect([await php.ask({ do: "acquire", lock }), await php.ask({ do: "acquireRead", lock })]).toEqual([
      false,
      false,
    ]);
    await redis.del(lock);

    await redis.zadd(lock, now + 20_000, "__write__");
    expect([await write(), await read()]).toEqual([CONTENDED, CONTENDED]);
    expect([await php.ask({ do: "acquire", lock }), await php.ask({ do: "acquireRead", lock })]).toEqual([
      false,
      false,
    ]);
    expect(await members()).toEqual(["__write__"]);
  });

  it("readers of both sides never see a half-written state of the writers of both sides", async () => {
    const counter = `${lock}:counter`;
    const [times, looks] = [25, 30];
    await redis.mset(counter, "0", `${counter}:copy`, "0");
    const other = new PhpPeer(server);
    const second = await connect(server.url);
    const torn = await Promise.all([
      look(redis, { lock, counter, times: looks }),
      other.ask({ do: "look", lock, counter, times: looks }),
      writePairs(second, { lock, counter, times }),
      php.ask({ do: "count", lock, counter, times }),
    ]);
    expect(torn).toEqual([0, 0, times, times]);
    expect(await redis.mget(counter, `${counter}:copy`)).toEqual([String(2 * times), String(2 * times)]);
    second.disconnect();
    await other.stop();
  });

  it("two of each side that count by reading first and promoting then lose no count", async () => {
    const counter = `${lock}:counter`;
    const times = 10;
    const other = new PhpPeer(server);
    await Promise.all([
      countByPromotion(redis, { lock, counter, times }),
      countByPromotion(redis, { lock, counter, times }),
      php.ask({ do: "countByPromotion", lock, counter, times }),
      other.ask({ do: "countByPromotion", lock, counter, times }),
    ]);
    expect(await redis.get(counter)).toBe(String(4 * times));
    await other.stop();
  });
});

interface Work {
  readonly lock: string;
  readonly counter: string;
  readonly times: number;
}

async function look(client: Redis, { lock, counter, times }: Work): Promise<number> {
  const store = new RedisStore(client);
  let torn = 0;
  for (let done = 0; done < times; ) {
    const owned = { key: lock, owner: newOwner() };
    if ((await store.acquire({ ...owned, ttlMs: 10_000, mode: "shared" })).outcome === "granted") {
      const first = await client.get(counter);
      if (first !== (await client.get(`${counter}:copy`))) torn += 1;
      await store.release(owned);
      done += 1;
    }
    await pause(1);
  }
  return torn;
}

async function writePairs(client: Redis, { lock, counter, times }: Work): Promise<number> {
  const store = new RedisStore(client);
  let done = 0;
  while (done < times) {
    const owned = { key: lock, owner: newOwner() };
    if ((await store.acquire({ ...owned, ttlMs: 10_000 })).outcome === "granted") {
      const value = Number(await client.get(counter)) + 1;
      await client.set(counter, value);
      await client.set(`${counter}:copy`, value);
      await store.release(owned);
      done += 1;
    } else await pause(1);
  }
  return done;
}

async function countByPromotion(client: Redis, { lock, counter, times }: Work): Promise<void> {
  const store = new RedisStore(client);
  for (let done = 0; done < times; ) {
    const owned = { key: lock, owner: newOwner() };
    if ((await store.acquire({ ...owned, ttlMs: 10_000, mode: "shared" })).outcome === "granted") {
      const value = Number(await client.get(counter));
      if ((await store.promote({ ...owned, ttlMs: 10_000 })).outcome === "promoted") {
        await client.set(counter, value + 1);
        done += 1;
      }
      await store.release(owned);
    }
    await pause(Math.random() * 4);
  }
}
