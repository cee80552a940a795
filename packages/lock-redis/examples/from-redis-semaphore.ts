/**
 * What redis-semaphore's Mutex does, done here, on the keys that it uses.
 *
 * REDIS_URL=redis://127.0.0.1:6379 node --conditions=@ota/source examples/from-redis-semaphore.ts
 */
import { LockFactory } from "@ota/lock-core";
import { RedisStore } from "@ota/lock-redis";
import { Redis } from "ioredis";

const redis = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379");
const store = new RedisStore(redis, { keyPrefix: "mutex:" });
const locks = new LockFactory(store, { ttlMs: 10_000, waitTimeoutMs: 10_000, autoExtend: true });
const mutex = locks.createLock("lockingResource");

async function iteration(): Promise<void> {}

// Acquire and release.
const lease = await mutex.acquire();
try {
  await iteration();
} finally {
  await lease.release();
}

// Work that stops when the lock is lost.
await mutex.run(async ({ signal }) => {
  for (let count = 0; count < 3 && !signal.aborted; count += 1) await iteration();
});

// Only if nobody has it.
const only = await mutex.tryAcquire();
if (only === undefined) console.log("already running");
await only?.release();

// From the scheduler to the handler, which may be another process.
const scheduled = await mutex.tryAcquire({ autoExtend: false });
const message = JSON.stringify(scheduled);
const handled = await locks.restore(message, { ttlMs: 10_000 });
console.log("handed over:", handled?.status);
await handled?.release();

await store.close();
await redis.quit();
