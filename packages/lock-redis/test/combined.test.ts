import { CombinedStore, LockFactory, LockQuorumError, MemoryState, MemoryStore } from "@ota/lock-core";
import { storeContract } from "@ota/lock-core/testing";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newKey, newOwner, stored, until } from "./support.ts";

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** Three independent servers, and two stores with connections of their own to all of them. */
async function startThree() {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const clients: Redis[] = [];
  const combine = async () => {
    const own = await Promise.all(servers.map((server) => connect(server.url)));
    clients.push(...own);
    const parts = own.map((client) => new RedisStore(client, { commandTimeoutMs: 1_000 }));
    return new CombinedStore(parts, { storeTimeoutMs: 300 });
  };
  const stores = [await combine(), await combine()] as const;
  const direct = await Promise.all(servers.map((server) => connect(server.url)));
  const stop = async () => {
    for (const client of [...clients, ...direct]) client.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  };
  return { servers: servers as [RedisServer, RedisServer, RedisServer], stores, direct, clients, stop };
}

describe.skipIf(!hasRedis)("CombinedStore over three Redis servers keeps the store contract", () => {
  let three: Awaited<ReturnType<typeof startThree>>;
  beforeAll(async () => {
    three = await startThree();
  });
  afterAll(() => three.stop());

  const cases = storeContract({
    stores: () => three.stores,
    claims: ["shared"],
    mayRefuseAll: true,
    plantString: async (key) =>
      void (await Promise.all(three.direct.map((redis) => redis.set(key, "somebody else's")))),
    plantOther: async (key) => void (await Promise.all(three.direct.map((redis) => redis.hset(key, "field", "value")))),
    contents: async (key) => {
      // The answer is given when a quorum is known. What was sent to the others has been done once they answer a ping
      // after it; the second one is for what was sent by then.
      for (let round = 0; round < 2; round++) await Promise.all(three.clients.map((client) => client.ping()));
      const contents = async (redis: Redis) => [
        (await redis.dumpBuffer(key))?.toString("hex"),
        await redis.pexpiretime(key),
      ];
      return Promise.all(three.direct.map(contents));
    },
    lifetimeMs: async (key) => {
      const remaining = await Promise.all(three.direct.map((redis) => redis.pttl(key)));
      if (remaining.includes(-1)) return Number.POSITIVE_INFINITY;
      const longest = Math.max(...remaining);
      return longest < 0 ? undefined : longest;
    },
    breakBackend: async () => {
      // Two of three are down: no quorum is left.
      await Promise.all(three.servers.slice(1).map((server) => server.kill()));
      return async () => {
        await Promise.all(three.servers.slice(1).map((server) => server.restart()));
        await until(() => [...three.clients, ...three.direct].every((client) => client.status === "ready"));
      };
    },
  });
  it.each(cases)("rule $rule: $title", (contractCase) => contractCase.run());
});

describe.skipIf(!hasRedis)("CombinedStore over a memory store and Redis keeps the store contract", () => {
  let server: RedisServer;
  let clients: Redis[];
  let stores: readonly [CombinedStore, CombinedStore];
  beforeAll(async () => {
    server = await startRedis();
    clients = [await connect(server.url), await connect(server.url)];
    const state = new MemoryState();
    const combine = (client: Redis) =>
      new CombinedStore([new MemoryStore({ state }), new RedisStore(client)], { strategy: "unanimous" });
    stores = [combine(clients[0] as Redis), combine(clients[1] as Redis)];
  });
  afterAll(async () => {
    for (const client of clients) client.disconnect();
    await server.stop();
  });

  const cases = storeContract({ stores: () => stores, claims: ["shared"], mayRefuseAll: true });
  it.each(cases)("rule $rule: $title", (contractCase) => contractCase.run());
});

describe.skipIf(!hasRedis)("CombinedStore over three Redis servers", () => {
  let three: Awaited<ReturnType<typeof startThree>>;
  beforeAll(async () => {
    three = await startThree();
  });
  afterAll(() => three.stop());

  it("keeps one and the same token on every server, as symfony/lock's CombinedStore does", async () => {
    const owned = { key: newKey(), owner: newOwner() };
    await three.stores[0].acquire({ ...owned, ttlMs: 10_000 });
    await until(async () => (await Promise.all(three.direct.map((redis) => redis.exists(owned.key)))).every(Boolean));
    for (const redis of three.direct) {
      const { members } = await stored(redis, owned.key);
      expect(Object.keys(members).sort()).toEqual(["__write__", owned.owner].sort());
    }
    expect(await three.stores[0].release(owned)).toBe("released");
  });

  it("excludes among many contenders, one at a time, and leaves nothing behind", async () => {
    const key = newKey();
    const locks = three.stores.map((store) => new LockFactory(store, { logger: silent, retryDelayMs: 20 }));
    let inside = 0;
    let turns = 0;
    const work = async (index: number) => {
      await locks[index % 2]?.createLock(key, { ttlMs: 10_000 }).run(
        async () => {
          inside += 1;
          expect(inside).toBe(1);
          await new Promise((resolve) => setTimeout(resolve, 2));
          inside -= 1;
          turns += 1;
        },
        { waitTimeoutMs: 20_000 },
      );
    };
    await Promise.all(Array.from({ length: 12 }, (_, index) => work(index)));
    expect(turns).toBe(12);
    await until(async () =>
      (await Promise.all(three.direct.map((redis) => redis.exists(key)))).every((found) => !found),
    );
  });

  it("works on with one server paused, and tells within its timeout when two are", async () => {
    const [first, second] = three.servers;
    const lock = new LockFactory(three.stores[0], { ttlMs: 20_000, logger: silent }).createLock(newKey());
    first.pause();
    try {
      let startedAt = performance.now();
      const lease = await lock.acquire();
      expect(await lease.extend()).toBe("extended");
      expect(await lease.isHeld()).toBe(true);
      expect(performance.now() - startedAt).toBeLessThan(300);
      second.pause();
      startedAt = performance.now();
      const error = await failure(lease.extend());
      expect(performance.now() - startedAt).toBeLessThan(1_000);
      expect(error).toMatchObject({ code: "LOCK_QUORUM", message: expect.stringContaining("no answer within 300 ms") });
      expect(lease.status).toBe("held");
      second.resume();
      await until(async () => (await lease.extend().catch(() => "lost")) === "extended");
      expect(await lease.release()).toBe("released");
    } finally {
      second.resume();
      first.resume();
    }
    await until(async () =>
      (await Promise.all(three.direct.map((redis) => redis.exists(lock.key)))).every((found) => !found),
    );
  });

  it("works on with one server killed; with two killed it throws a LockQuorumError and leaves nothing", async () => {
    const [first, second] = three.servers;
    const [direct0, direct1, direct2] = three.direct as [Redis, Redis, Redis];
    const locks = new LockFactory(three.stores[0], { ttlMs: 20_000, logger: silent });
    await first.kill();
    const lease = await locks.createLock(newKey()).acquire();
    expect(await lease.extend()).toBe("extended");
    expect(await lease.release()).toBe("released");

    await second.kill();
    const lock = locks.createLock(newKey());
    const error = await failure(lock.acquire({ waitTimeoutMs: 5_000 }));
    expect(error).toBeInstanceOf(LockQuorumError);
    const { votes } = error as LockQuorumError;
    expect(votes.map(({ store }) => store)).toEqual(["redis", "redis", "redis"]);
    expect(votes.slice(0, 2).map((vote) => vote.error?.code)).toEqual(["LOCK_STORE_FAULT", "LOCK_STORE_FAULT"]);
    expect(votes[2]?.error).toBeUndefined();
    await until(async () => (await direct2.exists(lock.key)) === 0);

    await Promise.all([first.restart(), second.restart()]);
    await until(() => [...three.clients, direct0, direct1].every((client) => client.status === "ready"));
    const after = await lock.acquire();
    expect(await after.release()).toBe("released");
  });
});
