import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import * as six from "ioredis";
import * as five from "ioredis-5";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type RedisClient, RedisStore } from "../src/index.ts";
import { connect, newKey, newOwner, until } from "./support.ts";

/** Acquires, is contended, extends, asks and releases over two stores, with a fresh script cache. */
async function expectWorking(one: RedisStore, two: RedisStore = one): Promise<void> {
  const key = newKey();
  const owner = newOwner();
  expect(await one.acquire({ key, owner, ttlMs: 10_000 })).toEqual({ outcome: "granted" });
  expect(await two.acquire({ key, owner: newOwner(), ttlMs: 10_000 })).toEqual({ outcome: "contended" });
  expect(await two.isHeld({ key, owner })).toBe(true);
  expect(await two.extend({ key, owner, ttlMs: 10_000 })).toBe("extended");
  expect(await two.extend({ key, owner: newOwner(), ttlMs: 10_000 })).toBe("lost");
  expect(await one.release({ key, owner })).toBe("released");
  expect(await two.release({ key, owner })).toBe("not-held");
  expect(await one.isHeld({ key, owner })).toBe(false);
}

describe.skipIf(!hasRedis)("RedisStore over", () => {
  let server: RedisServer;
  let observer: six.Redis;
  const clients: { disconnect(): void }[] = [];
  const keep = <T extends { disconnect(): void }>(client: T): T => {
    clients.push(client);
    return client;
  };

  beforeAll(async () => {
    server = await startRedis();
    observer = await connect(server.url);
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    await observer.flushall();
    await observer.script("FLUSH");
  });
  afterAll(async () => {
    observer.disconnect();
    await server.stop();
  });

  describe.each(["ioredis 5", "ioredis 6, RESP2", "ioredis 6, RESP3"])("%s", (kind) => {
    const create = (options: { keyPrefix?: string; stringNumbers?: boolean; enableAutoPipelining?: boolean } = {}) =>
      keep(
        kind === "ioredis 5"
          ? new five.Redis(server.url, options)
          : new six.Redis(server.url, { ...options, protocol: kind.endsWith("RESP2") ? 2 : 3 }),
      );

    it("default options", () => expectWorking(new RedisStore(create()), new RedisStore(create())));

    it("a keyPrefix of the client, which stays in front of that of the store", async () => {
      const store = new RedisStore(create({ keyPrefix: "client:" }), { keyPrefix: "store:" });
      await expectWorking(store);
      await store.acquire({ key: "k", owner: newOwner(), ttlMs: 10_000 });
      expect(await observer.keys("*")).toEqual(["client:store:k"]);
    });

    it("stringNumbers", () => expectWorking(new RedisStore(create({ stringNumbers: true }))));

    it("enableAutoPipelining", async () => {
      const store = new RedisStore(create({ enableAutoPipelining: true }));
      await Promise.all(Array.from({ length: 20 }, () => expectWorking(store)));
    });

    it("many operations at once", async () => {
      const store = new RedisStore(create());
      const key = newKey();
      const outcomes = await Promise.all(
        Array.from({ length: 100 }, () => store.acquire({ key, owner: newOwner(), ttlMs: 10_000 })),
      );
      expect(outcomes.filter(({ outcome }) => outcome === "granted")).toHaveLength(1);
    });
  });

  it("ioredis 6 with the reply mapping of RESP3", () =>
    expectWorking(new RedisStore(keep(new six.Redis(server.url, { protocol: 3, replyMapping: "resp3" })))));

  it("clients of ioredis 5 and 6 that exclude each other", () =>
    expectWorking(new RedisStore(keep(new five.Redis(server.url))), new RedisStore(keep(new six.Redis(server.url)))));

  it("a function, which is asked once for each operation and may give another client each time", async () => {
    const pool: RedisClient[] = [keep(new six.Redis(server.url)), keep(new six.Redis(server.url))];
    let asked = 0;
    await expectWorking(
      new RedisStore(() => {
        asked += 1;
        return pool[asked % 2] as RedisClient;
      }),
    );
    expect(asked).toBe(8);
  });

  it("a replaced connection, while the store lives on", async () => {
    let current = keep(new six.Redis(server.url));
    const store = new RedisStore(() => current);
    const [key, owner] = [newKey(), newOwner()];
    await store.acquire({ key, owner, ttlMs: 10_000 });
    current.disconnect();
    current = keep(new six.Redis(server.url));
    expect(await store.isHeld({ key, owner })).toBe(true);
    expect(await store.release({ key, owner })).toBe("released");
  });

  it("a client that the store leaves as it was: no commands, options or listeners are added", async () => {
    const client = keep(new six.Redis(server.url));
    await until(() => client.status === "ready");
    const look = () => [Object.keys(client), JSON.stringify(client.options), client.eventNames().map(String)];
    const before = look();
    await expectWorking(new RedisStore(client));
    expect(look()).toEqual(before);
  });

  describe("a cluster", () => {
    let node: RedisServer;
    beforeAll(async () => {
      node = await startRedis({ args: ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"] });
      await node.cli("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
      await until(async () => (await node.cli("CLUSTER", "INFO")).includes("cluster_state:ok"));
    });
    afterAll(() => node.stop());

    it.each(["ioredis 5", "ioredis 6"])("of %s, with keys in many slots and a lost script cache", async (kind) => {
      const nodes = [{ host: node.host, port: node.port }];
      const store = new RedisStore(keep(kind === "ioredis 5" ? new five.Cluster(nodes) : new six.Cluster(nodes)));
      await Promise.all(Array.from({ length: 20 }, () => expectWorking(store)));
      await node.cli("SCRIPT", "FLUSH");
      await expectWorking(store);
    });
  });
});
