import { LockFactory, LockKeyConflictError, LockOptionsError, LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import { Cluster, Redis } from "ioredis";
import * as five from "ioredis-5";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newKey, newOwner, stored, until } from "./support.ts";

const SEVEN_DAYS_MS = 7 * 86_400_000;
const ttlMs = 10_000;
const fencing = true;

describe.skipIf(!hasRedis)("the fence counter in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;
  let key: string;
  let counter: string;
  const owner = newOwner();
  const other = newOwner();

  beforeAll(async () => {
    server = await startRedis({ args: ["--save", "", "--appendonly", "no"] });
    redis = await connect(server.url);
    store = new RedisStore(redis);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    key = newKey();
    counter = `{${key}}:fence`;
  });

  const fence = async (by: string, mode?: "shared") => {
    const result = await store.acquire({ key, owner: by, ttlMs, mode, fencing });
    if (result.outcome === "contended") throw new Error("the key is held");
    return result.fencingToken;
  };
  const next = async () => {
    await store.forceRelease({ key });
    return fence(newOwner());
  };
  async function serverMicros(): Promise<bigint> {
    const [seconds, micros] = await redis.time();
    return BigInt(Number(seconds)) * 1_000_000n + BigInt(Number(micros));
  }

  it("is the server's time in microseconds, as digits, kept for seven days beyond the TTL", async () => {
    const from = await serverMicros();
    const token = await fence(owner);
    expect(token).toBeGreaterThanOrEqual(from);
    expect(token).toBeLessThanOrEqual(await serverMicros());
    expect(await redis.get(counter)).toBe(String(token));
    const keptMs = await redis.pttl(counter);
    expect(keptMs).toBeGreaterThan(SEVEN_DAYS_MS + ttlMs - 2_000);
    expect(keptMs).toBeLessThanOrEqual(SEVEN_DAYS_MS + ttlMs);
  });

  it("outlives the longest lease", async () => {
    await store.acquire({ key, owner, ttlMs: 315_360_000_000, fencing });
    expect(await redis.pttl(counter)).toBeGreaterThan(await redis.pttl(key));
  });

  it("counts on where the server's time is behind it, and from the time where it is ahead", async () => {
    const ahead = (await serverMicros()) + 3_600_000_000n;
    await redis.set(counter, String(ahead));
    expect([await next(), await next()]).toEqual([ahead + 1n, ahead + 2n]);
    await redis.set(counter, "41");
    expect(await next()).toBeGreaterThan(1_700_000_000_000_000n);
  });

  it("keeps every digit, up to 2^53", async () => {
    await redis.set(counter, "9007199254740985");
    expect([await next(), await next()]).toEqual([9007199254740986n, 9007199254740987n]);
    expect(await redis.get(counter)).toBe("9007199254740987");
  });

  it("is written by grants alone: not without fencing, not by a refusal, not by extend, demote or release", async () => {
    await store.acquire({ key, owner, ttlMs });
    expect(await redis.exists(counter)).toBe(0);
    expect(await store.acquire({ key, owner: other, ttlMs, fencing })).toEqual({ outcome: "contended" });
    expect(await redis.exists(counter)).toBe(0);
    const token = await fence(owner);
    await redis.pexpire(counter, 5_000);
    await store.acquire({ key, owner: other, ttlMs, fencing });
    await store.extend({ key, owner, ttlMs });
    await store.demote({ key, owner, ttlMs });
    await store.acquire({ key, owner: other, ttlMs, mode: "shared" });
    expect(await store.promote({ key, owner, ttlMs, fencing })).toEqual({ outcome: "contended" });
    await store.release({ key, owner });
    await store.forceRelease({ key });
    expect(await redis.get(counter)).toBe(String(token));
    expect(await redis.pttl(counter)).toBeLessThanOrEqual(5_000);
  });

  it("is read by readers and kept alive by them", async () => {
    const written = await fence(owner);
    await store.release({ key, owner });
    await redis.pexpire(counter, 5_000);
    expect([await fence(owner, "shared"), await fence(other, "shared")]).toEqual([written, written]);
    expect(await redis.pttl(counter)).toBeGreaterThan(SEVEN_DAYS_MS);
  });

  it("gives the first reader of all a token of its own, which the next reader gets too", async () => {
    const token = await fence(owner, "shared");
    expect(await fence(other, "shared")).toBe(token);
    expect(await next()).toBeGreaterThan(token as bigint);
  });

  it("mints for a promotion by promote or by acquire, and for neither a second time", async () => {
    const read = (await fence(owner, "shared")) as bigint;
    const promoted = await store.promote({ key, owner, ttlMs, fencing });
    const token = promoted.outcome === "promoted" ? promoted.fencingToken : undefined;
    expect(token).toBeGreaterThan(read);
    expect(await store.promote({ key, owner, ttlMs, fencing })).toEqual(promoted);
    expect(await fence(owner)).toBe(token);
    await store.demote({ key, owner, ttlMs });
    const byAcquire = await fence(owner);
    expect(byAcquire).toBeGreaterThan(token as bigint);
    expect(await fence(owner)).toBe(byAcquire);
  });

  it("goes on growing when the server comes back without its data", async () => {
    const token = (await fence(owner)) as bigint;
    await server.restart();
    await until(() => redis.status === "ready");
    expect(await redis.exists(counter)).toBe(0);
    expect(await fence(other)).toBeGreaterThan(token);
  });

  it.each([
    ["a hash", "hash", () => redis.hset(counter, "field", "value")],
    ["text", "string", () => redis.set(counter, "abc")],
    ["a negative number", "string", () => redis.set(counter, "-5")],
    ["a fraction", "string", () => redis.set(counter, "1.5")],
    ["a number that Lua cannot count on from", "string", () => redis.set(counter, "9007199254740991")],
  ])("is a LockKeyConflictError that names it when %s lies there, and nothing is granted", async (_what, type, put) => {
    await store.acquire({ key, owner: other, ttlMs, mode: "shared" });
    await put();
    const before = [await redis.dump(counter), await stored(redis, key)];
    const asks = [
      () => store.acquire({ key, owner: other, ttlMs, mode: "shared", fencing }),
      () => store.acquire({ key, owner: other, ttlMs, fencing }),
      () => store.promote({ key, owner: other, ttlMs, fencing }),
    ];
    for (const ask of asks) {
      const error = await failure(ask());
      expect(error).toBeInstanceOf(LockKeyConflictError);
      expect(error).toMatchObject({ key: counter });
      expect(String(error)).toContain(`data of the type ${type} in place of a fence counter`);
    }
    expect([await redis.dump(counter), await stored(redis, key)]).toEqual(before);
  });

  it("that the user may not touch is a LockStoreError, and nothing stays granted", async () => {
    await redis.acl("SETUSER", "unfenced", "on", ">password", "~*", "+@all", "-get");
    const client = await connect(server.url, { username: "unfenced", password: "password" });
    const error = await failure(new RedisStore(client).acquire({ key, owner, ttlMs, fencing }));
    client.disconnect();
    expect(error).toBeInstanceOf(LockStoreError);
    expect(await redis.exists(key)).toBe(0);
  });

  it.each([
    ["ioredis 5", () => new five.Redis(server.url)],
    ["ioredis 6, RESP3", () => new Redis(server.url, { protocol: 3 })],
    ["a client that gives numbers as text", () => new Redis(server.url, { stringNumbers: true })],
  ])("gives the whole token over %s", async (_what, create) => {
    const client = create();
    const result = await new RedisStore(client).acquire({ key, owner, ttlMs, fencing });
    client.disconnect();
    expect(result).toEqual({ outcome: "granted", fencingToken: BigInt((await redis.get(counter)) ?? "") });
  });
});

describe.skipIf(!hasRedis)("the name of the fence counter", () => {
  let server: RedisServer;
  let node: RedisServer;
  let admin: Redis;
  const clients: { disconnect(): void }[] = [];
  const keep = <T extends { disconnect(): void }>(client: T): T => {
    clients.push(client);
    return client;
  };

  beforeAll(async () => {
    server = await startRedis();
    node = await startRedis({ args: ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"] });
    await node.cli("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    await until(async () => (await node.cli("CLUSTER", "INFO")).includes("cluster_state:ok"));
    admin = await connect(node.url);
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
    await node.stop();
  });
  const cluster = (keyPrefix = "") => keep(new Cluster([{ host: node.host, port: node.port }], { keyPrefix }));
  const fence = (store: RedisStore, key: string) => store.acquire({ key, owner: newOwner(), ttlMs, fencing });

  it.each([
    ["firmware:7", "", "", "{firmware:7}:fence"],
    ["{firmware}:7", "", "", "{firmware}:{firmware}:7:fence"],
    ["firmware:7", "", "ota:", "ota:{ota:firmware:7}:fence"],
    ["firmware:7", "ota:", "", "ota:{ota:firmware:7}:fence"],
    ["firmware:7", "a:", "b:", "a:b:{a:b:firmware:7}:fence"],
    ["7", "{app}:", "", "{app}:{app}:7:fence"],
    ["a{", "", "", "{a{}:fence"],
    ["a{}b{c}", "", "", undefined],
    ["ключ 🔑", "", "", "{ключ 🔑}:fence"],
  ])("of %j behind the client's prefix %j and the store's %j is %j, in one slot with the lock", async (...row) => {
    const [key, clientPrefix, keyPrefix, name] = row;
    const store = new RedisStore(cluster(clientPrefix), { keyPrefix });
    if (name === undefined) return expect(await failure(fence(store, key))).toBeInstanceOf(LockOptionsError);
    expect(await fence(store, key)).toMatchObject({ outcome: "granted" });
    const lockName = `${clientPrefix}${keyPrefix}${key}`;
    expect((await admin.keys("*")).sort()).toEqual([lockName, name].sort());
    expect(await admin.cluster("KEYSLOT", name)).toBe(await admin.cluster("KEYSLOT", lockName));
    await admin.flushall();
  });

  it("cannot be had on a Cluster for a } without hash tag or the empty key: a LockOptionsError at createLock", async () => {
    const client = cluster();
    const locks = new LockFactory(new RedisStore(client), { fencing: true });
    for (const key of ["a}b", "{}a", "a}{", ""]) {
      expect(() => locks.createLock(key)).toThrow(LockOptionsError);
      expect(() => locks.createLock(key, { fencing: false })).not.toThrow();
    }
    const byFunction = new RedisStore(() => client);
    expect(() => byFunction.checkFencing("a}b")).not.toThrow();
    expect(await failure(fence(byFunction, "a}b"))).toBeInstanceOf(LockOptionsError);
    const asked = { key: "a}b", owner: newOwner(), ttlMs };
    expect(await failure(byFunction.promote({ ...asked, fencing }))).toBeInstanceOf(LockOptionsError);
    expect(await byFunction.acquire(asked)).toEqual({ outcome: "granted" });
    await byFunction.release(asked);
  });

  it("may be any elsewhere, and is another for each key", async () => {
    const redis = keep(new Redis(server.url));
    const store = new RedisStore(redis);
    const keys = ["foo", "{foo}", "{foo}x", "x{foo}", "", "{}", "a}b", "}{", "foo:fence", "{foo", "foo}"];
    for (const key of keys) expect(await fence(store, key)).toMatchObject({ outcome: "granted" });
    const counters = (await redis.keys("*")).filter((name) => !keys.includes(name));
    expect(counters).toHaveLength(keys.length);
  });

  it("is no name for a lock", async () => {
    const store = new RedisStore(keep(new Redis(server.url)), { keyPrefix: "ota:" });
    const owned = { owner: newOwner(), ttlMs };
    for (const key of ["{k}:fence", "x{k}y:fence", "{}:fence", "{k\n}:fence"]) {
      expect(await failure(store.acquire({ ...owned, key }))).toMatchObject({
        code: "LOCK_INVALID_OPTION",
        option: "key",
      });
    }
    for (const key of ["k:fence", "{k}:fences", "}{:fence"]) {
      expect(await store.acquire({ ...owned, key })).toEqual({ outcome: "granted" });
    }
  });
});
