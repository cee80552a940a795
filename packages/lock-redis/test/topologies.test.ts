import { LockFactory } from "@ota/lock-core";
import { hasRedis, type RedisCluster, type RedisSentinel, startRedisCluster, startRedisSentinel } from "@ota/testkit";
import * as six from "ioredis";
import * as five from "ioredis-5";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { newKey, until } from "./support.ts";

const CLIENTS = [
  { name: "ioredis 5", library: five, options: {}, resp: 2 },
  { name: "ioredis 6, RESP2", library: six, options: { protocol: 2 }, resp: 2 },
  { name: "ioredis 6, RESP3", library: six, options: { protocol: 3 }, resp: 3 },
  { name: "ioredis 6, RESP3 with its own reply types", library: six, options: { replyMapping: "resp3" }, resp: 3 },
] as const;
type Kind = (typeof CLIENTS)[number];

describe.skipIf(!hasRedis)("each client, over each topology", () => {
  let cluster: RedisCluster;
  let group: RedisSentinel;
  const clients: (six.Redis | six.Cluster)[] = [];
  const stores: RedisStore[] = [];

  beforeAll(async () => {
    [cluster, group] = await Promise.all([startRedisCluster(), startRedisSentinel()]);
  });
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    for (const client of clients.splice(0)) client.disconnect();
  });
  afterAll(() => Promise.all([cluster?.stop(), group?.stop()]));

  const topologies = {
    Cluster({ library, options }: Kind) {
      const Cluster = library.Cluster as typeof six.Cluster;
      return new Cluster([...cluster.addresses], { redisOptions: options as object });
    },
    Sentinel({ library, options }: Kind) {
      const sentinels = group.sentinels.map(({ host, port }) => ({ host, port }));
      const Redis = library.Redis as typeof six.Redis;
      return new Redis({ sentinels, name: group.name, ...(options as object) });
    },
  };

  /** What CLIENT INFO says the connection to a server with keys speaks. */
  async function respOf(client: six.Redis | six.Cluster): Promise<number> {
    await until(() => client.status === "ready");
    const connection = client instanceof six.Redis || client instanceof five.Redis ? client : client.nodes("master")[0];
    return Number(/resp=(\d)/.exec(String(await connection?.call("CLIENT", "INFO")))?.[1]);
  }

  /** Waits until a store is in the line for the key and is sure to hear of its turn. */
  async function untilInLine(topology: keyof typeof topologies, key: string): Promise<void> {
    const server = topology === "Cluster" ? (await cluster.locate(key)).owner : group.master;
    const audible = topology === "Cluster" ? "*" : "+";
    await until(async () => (await server.cli("ZRANGE", `{${key}}:queue`, "0", "-1")).startsWith(audible));
  }

  describe.each(["Cluster", "Sentinel"] as const)("%s", (topology) => {
    it.each(CLIENTS)("$name: acquires, fences, waits, is woken and releases", async (kind) => {
      const key = newKey();
      // Nobody asks again by itself before the test is over: those who come in have been woken.
      const options = { ttlMs: 60_000, fencing: true, retryDelayMs: 60_000, waitTimeoutMs: 90_000, logger: silent };
      const [one, two] = [kind, kind].map((each) => {
        const client = topologies[topology](each);
        client.on("error", () => {});
        clients.push(client);
        const store = new RedisStore(client, { commandTimeoutMs: 5_000 });
        stores.push(store);
        return new LockFactory(store, options);
      }) as [LockFactory, LockFactory];
      expect(await respOf(clients[0] as six.Redis)).toBe(kind.resp);

      const first = await one.createLock(key).acquire();
      expect(await two.createLock(key).tryAcquire()).toBeUndefined();
      const waiting = two.createLock(key).acquire();
      await untilInLine(topology, key);
      expect(await first.release()).toBe("released");
      const second = await waiting;
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken as bigint);

      const entering = one.createLock(key).acquire({ mode: "shared" });
      await untilInLine(topology, key);
      expect(await second.demote()).toBe("demoted");
      const reader = await entering;
      expect(reader.fencingToken).toBe(second.fencingToken);
      expect(await second.release()).toBe("released");
      expect(await reader.promote()).toBe("promoted");
      expect(reader.fencingToken).toBeGreaterThan(second.fencingToken as bigint);

      const next = two.createLock(key).acquire();
      await untilInLine(topology, key);
      expect(await one.forceRelease(key)).toBe("released");
      const last = await next;
      expect(await last.isHeld()).toBe(true);
      expect((await two.inspect(key)).mode).toBe("exclusive");
      expect(await last.release()).toBe("released");
    });
  });
});

const silent = { debug() {}, info() {}, warn() {}, error() {} };
