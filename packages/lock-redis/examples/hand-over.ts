/**
 * Gives a lease to another process: as JSON, over whatever connects the two. Here both are in one process.
 *
 * REDIS_URL=redis://127.0.0.1:6379 node --conditions=@ota/source examples/hand-over.ts
 */
import { LockFactory } from "@ota/lock-core";
import { RedisStore } from "@ota/lock-redis";
import { Redis } from "ioredis";

const redis = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379");
const locks = new LockFactory(new RedisStore(redis), { ttlMs: 10_000 });

const given = await locks.createLock("import:42").acquire(); // no `await using`: it is not released here
const message = JSON.stringify(given); // holds the owner token: a secret

const lease = await locks.restore(message); // undefined when it has ended meanwhile
console.log("taken over:", lease !== undefined && (await lease.isHeld()));

console.log("seen by operators:", await locks.inspect("import:42")); // { mode: 'exclusive', holders: [ { remainingMs: 9999 } ] }
await lease?.release();

await redis.quit();
