import { LockFactory } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import fc from "fast-check";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { leaseFromPhpKey, phpKeyFromLease, RedisStore } from "../src/index.ts";
import { hasPhpLock, PhpPeer } from "./php-peer.ts";
import { connect, newKey, newOwner, pause } from "./support.ts";

describe.skipIf(!hasRedis || !hasPhpLock)("a lock that goes from PHP to Node or back, as a serialised Key", () => {
  let server: RedisServer;
  let redis: Redis;
  let locks: LockFactory;
  let php: PhpPeer;
  let lock: string;

  beforeAll(async () => {
    server = await startRedis();
    redis = await connect(server.url);
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    locks = new LockFactory(new RedisStore(redis), { ttlMs: 20_000, logger });
    php = new PhpPeer(server);
  });
  afterAll(async () => {
    await php.stop();
    redis.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    lock = newKey();
  });

  const written = async (encoding: "native" | "plain" | "json") =>
    fromBase64(await php.ask({ do: "write", lock, encoding }));

  describe.each(["native", "plain", "json"] as const)("a Key that PHP wrote (%s)", (encoding) => {
    it("is restored in Node, which then extends and releases the lock", async () => {
      await php.ask({ do: "acquire", lock });
      const text = await written(encoding);
      const serialised = leaseFromPhpKey(text);
      expect(Math.abs(serialised.deadlineMs - Date.now() - 10_000)).toBeLessThan(3_000);
      const lease = await locks.restore(serialised);
      expect(lease).toMatchObject({ key: lock, mode: "exclusive", status: "held" });
      expect(lease?.remainingMs()).toBeGreaterThan(15_000);
      expect(await lease?.extend(30_000)).toBe("extended");
      expect(await php.ask({ do: "isAcquired", lock })).toBe(true);
      expect(await lease?.release()).toBe("released");
      expect(await php.ask({ do: "isAcquired", lock })).toBe(false);
    });

    it("is restored as undefined once its lock has lapsed, also while somebody else has it", async () => {
      await php.ask({ do: "acquire", lock, ttl: 0.06 });
      const serialised = leaseFromPhpKey(await written(encoding));
      await pause(80);
      expect(await locks.restore(serialised)).toBeUndefined();
      expect(await redis.exists(lock)).toBe(0);
      await php.ask({ do: "acquire", lock, as: "next" });
      expect(await locks.restore(serialised)).toBeUndefined();
      expect(await php.ask({ do: "isAcquired", lock, as: "next" })).toBe(true);
    });
  });

  it("a read lock of PHP is restored as a shared lease beside other readers, and refused as an exclusive one", async () => {
    await php.ask({ do: "acquireRead", lock });
    await php.ask({ do: "acquireRead", lock, as: "other" });
    const text = await written("native");
    expect(await locks.restore(leaseFromPhpKey(text))).toBeUndefined();
    expect(await php.ask({ do: "isAcquired", lock })).toBe(true);
    const lease = await locks.restore(leaseFromPhpKey(text, { mode: "shared" }));
    expect(lease?.mode).toBe("shared");
    expect(await lease?.promote()).toBe("contended");
    await php.ask({ do: "release", lock, as: "other" });
    expect(await lease?.promote()).toBe("promoted");
    await lease?.release();
  });

  describe.each(["native", "json"] as const)("a Key that Node wrote (%s)", (encoding) => {
    it("is read in PHP, which then refreshes and releases the lock", async () => {
      const lease = await locks.createLock(lock).acquire();
      const { owner } = lease.toJSON();
      const text = toBase64(phpKeyFromLease(lease.toJSON(), { encoding }));
      const read = await php.ask({ do: "read", lock, encoding, text });
      expect(read).toMatchObject({ resource: lock, token: owner });
      expect(Math.abs((read as { remaining: number }).remaining - 20)).toBeLessThan(3);
      expect(await php.ask({ do: "isAcquired", lock })).toBe(true);
      expect(await php.ask({ do: "refresh", lock, ttl: 30 })).toBe(null);
      expect(await redis.pttl(lock)).toBeGreaterThan(25_000);
      expect(await lease.isHeld()).toBe(true);
      await php.ask({ do: "release", lock });
      expect(await lease.isHeld()).toBe(false);
      expect(await redis.exists(lock)).toBe(0);
    });

    it("keeps a shared lease shared in PHP, until PHP promotes it", async () => {
      const lease = await locks.createLock(lock).acquire({ mode: "shared" });
      const text = toBase64(phpKeyFromLease(lease.toJSON(), { encoding }));
      await php.ask({ do: "read", lock, encoding, text });
      expect(await php.ask({ do: "acquireRead", lock, as: "other" })).toBe(true);
      expect(await php.ask({ do: "acquire", lock })).toBe(false);
      await php.ask({ do: "release", lock, as: "other" });
      expect(await php.ask({ do: "acquire", lock })).toBe(true);
      expect((await locks.inspect(lock)).mode).toBe("exclusive");
    });
  });

  it("a lock that went from Node to PHP and back is one and the same lease all along", async () => {
    const given = await locks.createLock(lock).acquire();
    const text = toBase64(phpKeyFromLease(given.toJSON(), { encoding: "native" }));
    await php.ask({ do: "read", lock, encoding: "native", text });
    const back = await locks.restore(leaseFromPhpKey(await written("native")));
    expect(back?.toJSON().owner).toBe(given.toJSON().owner);
    expect(await locks.createLock(lock).tryAcquire()).toBeUndefined();
    expect(await back?.release()).toBe("released");
  });

  it("all that PHP's serialize() writes for Keys of any name and state is read", async () => {
    const keys = (await php.ask({ do: "writeMany", lock, times: 300 })) as WrittenKey[];
    expect(keys).toHaveLength(600);
    for (const { text, resource, token, remaining } of keys) {
      const lease = leaseFromPhpKey(fromBase64(text));
      expect([lease.key, lease.owner]).toEqual([resource, token]);
      if (remaining === null) expect(lease.deadlineMs).toBe(0);
      else expect(Math.abs(lease.deadlineMs - Date.now() - remaining * 1000)).toBeLessThan(10_000);
    }
  });

  it("Keys of any name that Node writes are read by PHP's unserialize()", async () => {
    const names = fc.sample(
      fc.string({ unit: "binary" }).filter((name) => name.isWellFormed()),
      100,
    );
    for (const [index, key] of names.entries()) {
      const owner = newOwner();
      const lease = { version: 1, key, owner, mode: "exclusive", deadlineMs: Date.now() + 5_000 } as const;
      const encoding = index % 2 === 0 ? "native" : "json";
      const text = toBase64(phpKeyFromLease(lease, { encoding }));
      expect(await php.ask({ do: "read", lock, encoding, text })).toMatchObject({ resource: key, token: owner });
    }
  });
});

interface WrittenKey {
  readonly text: string;
  readonly resource: string;
  readonly token: string;
  readonly remaining: number | null;
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function fromBase64(text: unknown): string {
  return Buffer.from(String(text), "base64").toString();
}
