/**
 * Takes an exclusive lock, works under it, and lets it go.
 *
 * REDIS_URL=redis://127.0.0.1:6379 node --conditions=@ota/source examples/exclusive.ts
 */
import { LockFactory } from "@ota/lock-core";
import { RedisStore } from "@ota/lock-redis";
import { Redis } from "ioredis";

const redis = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379", {
  lazyConnect: true,
  enableOfflineQueue: false, // while Redis is down a command fails at once, and is not sent when it is back
  maxRetriesPerRequest: 0, // a command whose connection is lost fails at once, and is not sent twice
  socketTimeout: 2_000, // a connection that has gone silent is replaced
});
redis.on("error", (error) => console.error("redis:", error.message));
await redis.connect();

const store = new RedisStore(redis, { keyPrefix: "ota:" });
const locks = new LockFactory(store, { ttlMs: 10_000 });
const lock = locks.createLock("firmware:7");

await lock.run(async (lease) => {
  console.log(`held for another ${Math.round(lease.remainingMs())} ms`);
  console.log("a second attempt:", (await lock.tryAcquire()) === undefined ? "contended" : "granted");
});

const lease = await lock.tryAcquire();
console.log("after the first holder let go:", lease === undefined ? "contended" : "granted");
await lease?.release();

await store.close();
await redis.quit();
