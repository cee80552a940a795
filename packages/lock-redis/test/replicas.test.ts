import { LockFactory, LockOptionsError, LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis, startRedisCluster } from "@ota/testkit";
import * as six from "ioredis";
import * as five from "ioredis-5";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newKey, newOwner, until } from "./support.ts";

const TTL_MS = 20_000;
const GRANTED = { outcome: "granted" };

describe.skipIf(!hasRedis)("RedisStore with replicas that have to confirm", () => {
  let master: RedisServer;
  let replica: RedisServer;
  let redis: six.Redis;
  let store: RedisStore;
  let key: string;
  let owner: string;

  /** Counted online, and has confirmed a write: the first takes less than the second. */
  const replicaIsThere = async () => {
    await until(async () => /state=online,offset=\d+,lag=[01]\b/.test(await master.cli("INFO", "replication")));
    await until(async () => {
      await redis.set("probe", "1");
      return (await redis.wait(1, 1_000)) === 1;
    });
  };

  beforeAll(async () => {
    master = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    replica = await startRedis({ args: ["--replicaof", `${master.host} ${master.port}`] });
    redis = await connect(master.url);
    await replicaIsThere();
  });
  afterAll(async () => {
    redis.disconnect();
    await Promise.all([master.stop(), replica.stop()]);
  });
  beforeEach(() => {
    store = new RedisStore(redis, { commandTimeoutMs: 10_000, replicas: { count: 1, timeoutMs: 5_000 } });
    key = newKey();
    owner = newOwner();
  });

  it("a grant, an extension, a promotion and a demotion are on the replica when they are answered", async () => {
    const at = async () => Number(await replica.cli("PEXPIRETIME", key));
    expect(await store.acquire({ key, owner, ttlMs: TTL_MS, mode: "shared" })).toEqual(GRANTED);
    const granted = await at();
    expect(granted).toBeGreaterThan(0);
    expect(await store.extend({ key, owner, ttlMs: 2 * TTL_MS })).toBe("extended");
    expect(await at()).toBeGreaterThan(granted);
    const marker = () => replica.cli("ZSCORE", key, "__write__");
    expect(await store.promote({ key, owner, ttlMs: TTL_MS })).toEqual({ outcome: "promoted" });
    expect(await marker()).not.toBe("");
    expect(await store.demote({ key, owner, ttlMs: TTL_MS })).toBe("demoted");
    expect(await marker()).toBe("");
    await store.release({ key, owner });
  });

  it("a waiter's grant is confirmed as well", async () => {
    const locks = new LockFactory(store);
    const lease = await locks.createLock(key).acquire();
    const waiting = new LockFactory(new RedisStore(redis, { replicas: { count: 1 } })).createLock(key).acquire();
    await lease.release();
    await waiting;
    expect(await replica.cli("ZCARD", key)).toBe("2");
  });

  it("sends the script and WAIT together: one round trip, and none for what is refused", async () => {
    await store.acquire({ key, owner, ttlMs: TTL_MS });
    const waits = async () => Number(/cmdstat_wait:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1]);
    const before = await waits();
    expect(await store.acquire({ key, owner, ttlMs: TTL_MS })).toEqual(GRANTED);
    expect(await waits()).toBe(before + 1);
    await store.isHeld({ key, owner });
    await store.release({ key, owner });
    expect(await waits()).toBe(before + 1);
  });

  it("too few replicas: the acquire is a LockStoreError that says so, and is undone", async () => {
    replica.pause();
    try {
      const impatient = new RedisStore(redis, { replicas: { count: 1, timeoutMs: 50 } });
      const error = await failure(impatient.acquire({ key, owner, ttlMs: TTL_MS }));
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ operation: "acquire", key });
      expect(String(error)).toMatch(
        /0 of 1 replica\(s\) confirmed within 50 ms.*Check that the replicas are connected/,
      );
      await until(async () => (await redis.exists(key)) === 0);
    } finally {
      replica.resume();
      await replicaIsThere();
    }
  });

  it("too few replicas for an extend: a LockStoreError, and the lease goes on", async () => {
    await store.acquire({ key, owner, ttlMs: TTL_MS });
    const demanding = new RedisStore(redis, { replicas: { count: 2, timeoutMs: 50 } });
    expect(String(await failure(demanding.extend({ key, owner, ttlMs: TTL_MS })))).toMatch(/1 of 2 replica\(s\)/);
    expect(await store.isHeld({ key, owner })).toBe(true);
  });

  it("contention stays contention, however few replicas there are", async () => {
    await store.acquire({ key, owner, ttlMs: TTL_MS });
    const demanding = new RedisStore(redis, { replicas: { count: 9, timeoutMs: 50 } });
    expect(await demanding.acquire({ key, owner: newOwner(), ttlMs: TTL_MS })).toEqual({ outcome: "contended" });
    expect(await demanding.extend({ key, owner: newOwner(), ttlMs: TTL_MS })).toBe("lost");
  });

  it("a lost script cache changes nothing, with ioredis 5 either", async () => {
    const client = new five.Redis(master.url);
    const older = new RedisStore(client, { replicas: { count: 1 } });
    await redis.script("FLUSH");
    expect(await older.acquire({ key, owner, ttlMs: TTL_MS })).toEqual(GRANTED);
    expect(await replica.cli("EXISTS", key)).toBe("1");
    client.disconnect();
  });

  it("a server that does not know WAIT grants without, and a warning says so once", async () => {
    await using lacking = await startRedis({ args: ["--rename-command", "WAIT", ""] });
    const client = await connect(lacking.url);
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    const tolerant = new RedisStore(client, { replicas: { count: 1 } });
    for (const each of [newKey(), newKey()]) {
      expect(await tolerant.acquire({ key: each, owner, ttlMs: TTL_MS })).toEqual(GRANTED);
    }
    await until(() => warnings.length > 0);
    process.off("warning", onWarning);
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringMatching(/does not know WAIT/)]);
    client.disconnect();
  });

  it("a user who may not run WAIT: a LockStoreError that says so, and the grant is undone", async () => {
    await redis.acl("SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-wait");
    const client = await connect(master.url, { username: "u", password: "p" });
    const refused = new RedisStore(client, { replicas: { count: 1 } });
    const error = await failure(refused.acquire({ key, owner, ttlMs: TTL_MS }));
    expect(String(error)).toMatch(/^LockStoreError: .*WAIT failed: NOPERM.*the user may run WAIT/);
    await until(async () => (await redis.exists(key)) === 0);
    client.disconnect();
  });

  it.each([
    [{ count: 0 }, /replicas\.count must be an integer from 1 up, but was 0/],
    [{ count: 1, timeoutMs: 1_001 }, /replicas\.timeoutMs must be an integer of milliseconds from 1 to .*1000/],
    [{ count: 1, timeout: 5 }, /replicas\.timeout must be left out, but was 5/],
  ])("refuses %j", (replicas, message) => {
    expect(() => new RedisStore(redis, { replicas })).toThrow(message);
  });

  it("refuses to pass locks on at the same time", () => {
    const options = { replicas: { count: 1 }, peers: "node-only" } as const;
    expect(() => new RedisStore(redis, options)).toThrow(LockOptionsError);
  });
});

describe.skipIf(!hasRedis)("RedisStore with replicas on a Cluster", () => {
  it("asks the replicas of the slot's owner, and the lease survives when that owner is killed", async () => {
    await using cluster = await startRedisCluster({ replicasPerMaster: 1 });
    const client = new six.Cluster([...cluster.addresses]);
    client.on("error", () => {});
    // Not about time: a Cluster that has just been started on a busy machine may take its own.
    const store = new RedisStore(client, { commandTimeoutMs: 15_000, replicas: { count: 1, timeoutMs: 10_000 } });
    const keys = Array.from({ length: 9 }, newKey);
    const owner = newOwner();
    await Promise.all(keys.map((key) => store.acquire({ key, owner, ttlMs: 60_000 })));
    const two = new RedisStore(client, { commandTimeoutMs: 15_000, replicas: { count: 2, timeoutMs: 1_000 } });
    expect(String(await failure(two.acquire({ key: newKey(), owner, ttlMs: TTL_MS })))).toMatch(/1 of 2 replica/);

    const victim = (await cluster.locate(keys[0] as string)).owner;
    await victim.kill();
    for (const key of keys) {
      await until(async () => (await store.isHeld({ key, owner }).catch(() => undefined)) === true);
    }
    client.disconnect();
  });
});
