import { LockFactory, type Logger } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis, startTcpProxy, type TcpProxy } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newKey, newOwner, until } from "./support.ts";

const TTL_MS = 20_000; // Far longer than any test: what is gone earlier was given back.
const logger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Between the store and Redis a proxy loses and holds bytes; `other` is a store past it. */
describe.skipIf(!hasRedis)("changes of mode on a failing network", () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let direct: Redis;
  let redis: Redis;
  let other: RedisStore;
  let locks: LockFactory;
  let key: string;

  beforeAll(async () => {
    server = await startRedis();
    direct = await connect(server.url);
    other = new RedisStore(direct);
  });
  afterAll(async () => {
    direct.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    proxy = await startTcpProxy({ target: server });
    redis = await connect(`redis://${proxy.host}:${proxy.port}`);
    const store = new RedisStore(redis, { commandTimeoutMs: 150 });
    locks = new LockFactory(store, { ttlMs: TTL_MS, logger });
    key = newKey();
    // So that every script is known and each operation is one request.
    const lease = await locks.createLock("warm-up").acquire({ mode: "shared" });
    await lease.promote();
    await lease.demote();
    await lease.release();
  });
  afterEach(async () => {
    redis.disconnect();
    await proxy.close();
  });

  const read = () => other.acquire({ key, owner: newOwner(), ttlMs: TTL_MS, mode: "shared" });
  const write = () => other.acquire({ key, owner: newOwner(), ttlMs: TTL_MS });
  const back = () => until(() => redis.status === "ready");
  /** What the proxy held is lost, and the client has a new connection. */
  async function reconnected(): Promise<void> {
    proxy.cut();
    await until(() => redis.status !== "ready");
    proxy.resume();
    await back();
  }

  it("a promotion whose reply is lost leaves a shared lease, and the next extend lets readers in again", async () => {
    const lease = await locks.createLock(key).acquire({ mode: "shared" });
    proxy.cutBeforeReply(1);
    expect(await failure(lease.promote())).toMatchObject({ code: "LOCK_STORE_FAULT", operation: "promote" });
    expect([lease.mode, lease.status]).toEqual(["shared", "held"]);
    await back();
    expect((await other.inspect({ key })).mode).toBe("exclusive");
    expect(await lease.extend()).toBe("extended");
    expect(await read()).toEqual({ outcome: "granted" });
    expect(await write()).toEqual({ outcome: "contended" });
  });

  it("a promotion whose reply is lost may be asked for again, and leaves nothing when the lease is released", async () => {
    const lease = await locks.createLock(key).acquire({ mode: "shared" });
    proxy.cutBeforeReply(1);
    await failure(lease.promote());
    await back();
    expect(await lease.promote()).toBe("promoted");
    expect(await lease.release()).toBe("released");
    expect(await direct.exists(key)).toBe(0);
  });

  it("a promotion that was never carried out leaves a shared lease as well", async () => {
    const lease = await locks.createLock(key).acquire({ mode: "shared" });
    proxy.hold("requests");
    expect(await failure(lease.promote())).toMatchObject({ code: "LOCK_STORE_FAULT" });
    await reconnected();
    expect(await read()).toEqual({ outcome: "granted" });
    expect(await lease.extend()).toBe("extended");
    expect(lease.mode).toBe("shared");
  });

  it("a demotion whose outcome is not known leaves a shared lease, which the next extend confirms", async () => {
    const lease = await locks.createLock(key).acquire();
    proxy.hold("requests");
    expect(await failure(lease.demote())).toMatchObject({ code: "LOCK_STORE_FAULT", operation: "demote" });
    expect(lease.mode).toBe("shared");
    await reconnected();
    expect(await read()).toEqual({ outcome: "contended" });
    expect(await lease.extend()).toBe("extended");
    expect(await read()).toEqual({ outcome: "granted" });
  });

  it("scripts that the server has forgotten are sent again", async () => {
    const lease = await locks.createLock(key, { fencing: true }).acquire({ mode: "shared" });
    for (const change of [() => lease.promote(), () => lease.demote(), () => locks.inspect(key)]) {
      await direct.script("FLUSH");
      await change();
    }
    await direct.script("FLUSH");
    expect(await locks.forceRelease(key)).toBe("released");
  });
});

describe.skipIf(!hasRedis)("changes of mode on a server at its memory limit", () => {
  let server: RedisServer;
  let redis: Redis;

  beforeAll(async () => {
    server = await startRedis({ args: ["--maxmemory-policy", "noeviction"] });
    redis = await connect(server.url);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  it("work, with fencing tokens too: what is held can be changed, freed and looked at", async () => {
    const store = new RedisStore(redis);
    const [key, owner] = [newKey(), newOwner()];
    const request = { key, owner, ttlMs: TTL_MS, fencing: true };
    await store.acquire({ ...request, mode: "shared" });
    await redis.config("SET", "maxmemory", "1");
    await expect(redis.set("other", "x")).rejects.toThrow(/OOM/);
    expect(await store.promote(request)).toMatchObject({ outcome: "promoted" });
    expect(await store.demote(request)).toBe("demoted");
    expect(await store.acquire(request)).toMatchObject({ outcome: "granted" });
    expect((await store.inspect({ key })).mode).toBe("exclusive");
    expect(await store.forceRelease({ key })).toBe("released");
    expect(await redis.exists(key)).toBe(0);
  });
});
