import { LockFactory, LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis, startTcpProxy } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { randomFrom } from "./model/belief.ts";
import { connect, failure, newKey, newOwner, pause, until } from "./support.ts";

const TTL_MS = 60_000; // Far longer than any test: what is gone earlier was released.
const GRANTED = { outcome: "granted" };

describe.skipIf(!hasRedis)("RedisStore on a server that pauses, dies and comes back", () => {
  let server: RedisServer;
  let direct: Redis;
  let key: string;
  let owner: string;

  beforeEach(() => {
    key = newKey();
    owner = newOwner();
  });
  afterEach(async () => {
    direct.disconnect();
    await server.stop();
  });

  async function start(...args: string[]): Promise<RedisStore> {
    server = await startRedis({ args });
    direct = await connect(server.url);
    return new RedisStore(await connect(server.url), { commandTimeoutMs: 150 });
  }

  it.each(["ALL", "WRITE"])(
    "CLIENT PAUSE %s: errors at their deadline, and nothing stays that nobody was told of",
    async (what) => {
      const store = await start();
      await store.acquire({ key: "warm-up", owner, ttlMs: TTL_MS });
      await store.release({ key: "warm-up", owner });
      await direct.client("PAUSE", 700, what as "ALL");
      const keys = Array.from({ length: 10 }, newKey);
      const asked = [
        ...keys.map((each) => store.acquire({ key: each, owner: newOwner(), ttlMs: TTL_MS })),
        ...keys.map((each) =>
          store.acquire({ key: each, owner: newOwner(), ttlMs: TTL_MS, mode: "shared", fencing: true }),
        ),
      ];
      for (const result of await Promise.allSettled(asked)) {
        expect(result).toMatchObject({ status: "rejected", reason: expect.any(LockStoreError) });
      }
      await direct.set("probe", "x"); // Answered when the pause is over.
      await until(async () => (await direct.exists(...keys)) === 0);
      expect(await direct.exists(...keys)).toBe(0);
      expect(await store.acquire({ key, owner, ttlMs: TTL_MS })).toEqual(GRANTED);
    },
  );

  it("killed and restarted with its data: writers, readers and fencing go on where they were", async () => {
    const store = await start("--appendonly", "yes", "--appendfsync", "always");
    const first = (await store.acquire({ key, owner, ttlMs: TTL_MS, fencing: true })) as { fencingToken: bigint };
    const reader = { key: newKey(), owner: newOwner(), ttlMs: TTL_MS };
    await store.acquire({ ...reader, mode: "shared" });
    await store.acquire({ ...reader, owner: newOwner(), mode: "shared" });
    await server.restart();
    await until(() => direct.status === "ready");
    const again = new RedisStore(direct);
    expect(await again.isHeld({ key, owner })).toBe(true);
    expect(await again.acquire({ key, owner: newOwner(), ttlMs: TTL_MS })).toEqual({ outcome: "contended" });
    expect(await again.extend({ key, owner, ttlMs: TTL_MS })).toBe("extended");
    expect(await again.promote(reader)).toEqual({ outcome: "contended" });
    expect(await again.demote({ key, owner, ttlMs: TTL_MS })).toBe("demoted");
    expect(await again.release({ key, owner })).toBe("released");
    const next = await again.acquire({ key, owner: newOwner(), ttlMs: TTL_MS, fencing: true });
    expect((next as { fencingToken: bigint }).fencingToken).toBeGreaterThan(first.fencingToken);
  });

  it("a lease that ended while the server was down is over when it is back with its data", async () => {
    const store = await start("--appendonly", "yes", "--appendfsync", "always");
    await store.acquire({ key, owner, ttlMs: 300 });
    await server.kill();
    await pause(350);
    await server.restart();
    await until(() => direct.status === "ready");
    const again = new RedisStore(direct);
    expect(await again.isHeld({ key, owner })).toBe(false);
    expect(await again.acquire({ key, owner: newOwner(), ttlMs: TTL_MS })).toEqual(GRANTED);
  });

  it("a connection cut while the server executes: what it carries out for nobody is undone", async () => {
    await start();
    await using proxy = await startTcpProxy({ target: server });
    const redis = await connect(`redis://${proxy.host}:${proxy.port}`);
    const store = new RedisStore(redis, { commandTimeoutMs: 150 });
    await store.acquire({ key: "warm-up", owner, ttlMs: TTL_MS });
    const busy = (await connect(server.url)).call("DEBUG", "SLEEP", "0.4");
    await pause(50);
    const acquiring = failure(store.acquire({ key, owner, ttlMs: TTL_MS, fencing: true }));
    await pause(50); // The request is with the server, which is busy with another one.
    proxy.cut();
    expect(await acquiring).toBeInstanceOf(LockStoreError);
    await busy;
    await until(async () => (await direct.exists(`{${key}}:fence`)) === 1); // It was carried out.
    await until(async () => (await direct.exists(key)) === 0);
    redis.disconnect();
  });

  it("an abort at any moment leaves nothing behind, once the replies are in", async () => {
    await start();
    await using proxy = await startTcpProxy({ target: server });
    proxy.delay(2);
    const redis = await connect(`redis://${proxy.host}:${proxy.port}`);
    const locks = new LockFactory(new RedisStore(redis), { ttlMs: TTL_MS });
    const random = randomFrom(7);
    const keys = Array.from({ length: 60 }, newKey);
    let aborts = 0;
    await Promise.all(
      keys.map(async (each) => {
        const signal = AbortSignal.timeout(Math.round(random() * 10));
        const mode = random() < 0.5 ? "shared" : "exclusive";
        await pause(random() * 5);
        try {
          await (await locks.createLock(each, { fencing: random() < 0.5 }).acquire({ signal, mode })).release();
        } catch (error) {
          expect(error).toBe(signal.reason);
          aborts += 1;
        }
      }),
    );
    expect(aborts).toBeGreaterThan(0);
    // By then all has been answered: the digests, the scripts in full, and the releases of what they granted.
    for (let round = 0; round < 3; round++) await redis.ping();
    await until(async () => (await direct.exists(...keys)) === 0);
    await redis.ping();
    expect(await direct.exists(...keys)).toBe(0);
    redis.disconnect();
  });
});
