import { createRequire } from "node:module";
import { LockFactory as VerrouFactory } from "@verrou/core";
import { redisStore } from "@verrou/core/drivers/redis";
import { Redis } from "ioredis";
import { Mutex } from "redis-semaphore";
import { createLock, IoredisAdapter } from "redlock-universal";
import { address, type Session, TTL_MS } from "../contender.ts";

// Its types are not found by its exports map; the two methods used here are these.
const Redlock = createRequire(import.meta.url)("redlock").default as new (
  clients: readonly Redis[],
  settings?: { readonly retryCount?: number },
) => { acquire(keys: readonly string[], ttlMs: number): Promise<{ release(): Promise<unknown> }> };

/** redlock 5 with its defaults, but for the number of retries: it waits as long as it takes. */
export async function openRedlock(url: string): Promise<Session> {
  const redis = new Redis(address(url));
  await redis.ping();
  const redlock = new Redlock([redis], { retryCount: -1 });
  return {
    async pair(key) {
      await (await redlock.acquire([key], TTL_MS)).release();
    },
    async waitFor(key, work) {
      const lock = await redlock.acquire([key], TTL_MS);
      await work();
      await lock.release();
    },
    hold: (key) => redlock.acquire([key], TTL_MS),
    close: async () => redis.disconnect(),
  };
}

/** redis-semaphore's Mutex with its defaults, but for renewal, which nobody else here does. */
export async function openRedisSemaphore(url: string): Promise<Session> {
  const redis = new Redis(address(url));
  await redis.ping();
  const mutex = (key: string) =>
    new Mutex(redis, key, { lockTimeout: TTL_MS, refreshInterval: 0, acquireTimeout: 120_000 });
  return {
    async pair(key) {
      const lock = mutex(key);
      await lock.acquire();
      await lock.release();
    },
    async waitFor(key, work) {
      const lock = mutex(key);
      await lock.acquire();
      await work();
      await lock.release();
    },
    async hold(key) {
      const lock = mutex(key);
      await lock.acquire();
      return lock;
    },
    close: async () => redis.disconnect(),
  };
}

/** @verrou/core with its defaults. */
export async function openVerrou(url: string): Promise<Session> {
  const redis = new Redis(address(url));
  await redis.ping();
  // Written for ioredis 5; the commands that it uses are the same in 6.
  const store = redisStore({ connection: redis as never }).factory();
  const locks = new VerrouFactory(store);
  return {
    async pair(key) {
      const lock = locks.createLock(key, TTL_MS);
      if (!(await lock.acquireImmediately())) throw new Error("a key that nobody wants was held");
      await lock.release();
    },
    async waitFor(key, work) {
      const lock = locks.createLock(key, TTL_MS);
      if (!(await lock.acquire())) throw new Error("verrou gave up waiting");
      await work();
      await lock.release();
    },
    async hold(key) {
      const lock = locks.createLock(key, TTL_MS);
      await lock.acquireImmediately();
      return lock;
    },
    close: async () => redis.disconnect(),
  };
}

/** redlock-universal with its defaults, but for the number of retries. */
export async function openRedlockUniversal(url: string): Promise<Session> {
  const redis = new Redis(address(url));
  await redis.ping();
  const adapter = new IoredisAdapter(redis as never);
  const lockOf = (key: string) => createLock({ adapter, key, ttl: TTL_MS, retryAttempts: 10_000 });
  return {
    async pair(key) {
      const lock = lockOf(key);
      await lock.release(await lock.acquire());
    },
    async waitFor(key, work) {
      const lock = lockOf(key);
      const handle = await lock.acquire();
      await work();
      await lock.release(handle);
    },
    async hold(key) {
      const lock = lockOf(key);
      return [lock, await lock.acquire()];
    },
    close: async () => redis.disconnect(),
  };
}
