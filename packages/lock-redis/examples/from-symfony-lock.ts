/**
 * What a PHP service does with symfony/lock, done in Node on the same keys.
 *
 * REDIS_URL=redis://127.0.0.1:6379 node --conditions=@ota/source examples/from-symfony-lock.ts
 */
import { LockFactory } from "@ota/lock-core";
import { leaseFromPhpKey, phpKeyFromLease, RedisStore } from "@ota/lock-redis";
import { Redis } from "ioredis";

const redis = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379");
const store = new RedisStore(redis, { yieldToPollersEveryMs: 1_000 });
const locks = new LockFactory(store, { ttlMs: 30_000 });
const lock = locks.createLock("invoice:7");

// Once, without waiting.
const lease = await lock.tryAcquire();
if (lease === undefined) throw new Error("PHP, or another Node process, has it");
await lease.extend(60_000);
console.log("held:", await lease.isHeld(), "for more than 59 s:", lease.remainingMs() > 59_000);
await lease.release();

// Waiting, and released whatever happens.
await lock.run(async (held) => console.log("in the lock:", held.status), { waitTimeoutMs: 5_000 });

// A read lock, promoted and demoted.
const reader = await lock.acquire({ mode: "shared" });
if ((await reader.promote()) === "contended") console.log("other readers are there; this one still is, too");
await reader.demote();

// To PHP, and back.
const textForPhp = phpKeyFromLease(reader.toJSON(), { encoding: "native" });
const restored = await locks.restore(leaseFromPhpKey(textForPhp, { mode: "shared" }));
console.log("back from PHP:", restored?.mode);
await restored?.release();

await store.close();
await redis.quit();
