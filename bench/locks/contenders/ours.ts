import { LockFactory } from "@ota/lock-core";
import { RedisStore, type RedisStoreOptions } from "@ota/lock-redis";
import { Redis } from "ioredis";
import { address, type OpenSession, TTL_MS } from "../contender.ts";

/** These packages, as a user takes them. */
export function openOurs(options: { readonly fencing?: boolean; readonly store?: RedisStoreOptions }): OpenSession {
  const { fencing = false } = options;
  return async (url) => {
    const redis = new Redis(address(url));
    await redis.ping();
    const store = new RedisStore(redis, options.store);
    const locks = new LockFactory(store, { ttlMs: TTL_MS });
    return {
      async pair(key) {
        const lease = await locks.createLock(key, { fencing }).tryAcquire();
        if (lease === undefined) throw new Error("a key that nobody wants was held");
        await lease.release();
      },
      waitFor: (key, work) => locks.createLock(key, { fencing }).run(work, { waitTimeoutMs: 120_000 }),
      hold: (key) => locks.createLock(key, { fencing }).tryAcquire(),
      async close() {
        await store.close();
        redis.disconnect();
      },
    };
  };
}
