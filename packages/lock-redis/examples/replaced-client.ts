/**
 * A store that lives on while its connection is replaced: it asks a function for the client of each operation.
 *
 * REDIS_URL=redis://127.0.0.1:6379 node --conditions=@ota/source examples/replaced-client.ts
 */
import { LockFactory } from "@ota/lock-core";
import { RedisStore } from "@ota/lock-redis";
import { Redis } from "ioredis";

const url = process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379";
let current = new Redis(url);

const store = new RedisStore(() => current);
const lock = new LockFactory(store).createLock("firmware:8", { ttlMs: 10_000 });

const lease = await lock.acquire();
const replaced = current;
current = new Redis(url);
await replaced.quit();
console.log("still held over the new connection:", await lease.isHeld());

await lease.release();
await current.quit();
