/**
 * What redlock does, done here.
 *
 * REDIS_URL=redis://127.0.0.1:6379 node --conditions=@ota/source examples/from-redlock.ts
 */
import { type Lease, LockFactory, LockTimeoutError } from "@ota/lock-core";
import { RedisStore } from "@ota/lock-redis";
import { Redis } from "ioredis";

const redis = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379");
const store = new RedisStore(redis);
const locks = new LockFactory(store, { ttlMs: 5_000 });

async function something(): Promise<void> {}

// Acquire and release.
const lease = await locks.createLock("a").acquire({ maxAttempts: 11, retryDelayMs: 200 });
try {
  await something();
  if ((await lease.extend(5_000)) === "lost") throw new Error("somebody else may have the lock");
  await something();
} finally {
  await lease.release();
}

// A routine that is extended as long as it runs.
await locks.createLock("a").run(
  async ({ signal }) => {
    await something();
    if (signal.aborted) throw signal.reason;
    await something();
  },
  { autoExtend: true },
);

// Several resources: one after the other, in the order of their names, so that two callers cannot wait for each other.
async function withAll(keys: readonly string[], work: (leases: readonly Lease[]) => Promise<void>): Promise<void> {
  await using leases = new AsyncDisposableStack();
  const held: Lease[] = [];
  for (const key of [...new Set(keys)].sort()) {
    held.push(leases.use(await locks.createLock(key, { autoExtend: true }).acquire()));
  }
  await work(held);
  for (const each of held) each.assertHeld();
}
await withAll(["sender:1", "recipient:2"], something);

// Being locked out is an error of its own.
const held = await locks.createLock("a").acquire();
const error = await locks
  .createLock("a")
  .acquire({ waitTimeoutMs: 20 })
  .catch((reason: unknown) => reason);
console.log(error instanceof LockTimeoutError && error.message);
await held.release();

await store.close();
await redis.quit();
