/**
 * Guards a row by the fencing token: a holder that was stopped past the end of its lease cannot overwrite its successor.
 *
 * REDIS_URL=redis://127.0.0.1:6379 DATABASE_URL=postgres://127.0.0.1/test \
 *   node --conditions=@ota/source examples/fenced-update.ts
 */
import { fencedWrite, LockFactory, LockLostError } from "@ota/lock-core";
import { RedisStore } from "@ota/lock-redis";
import { and, eq, lte, sql } from "drizzle-orm";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/postgres-js";
import { Redis } from "ioredis";
import postgres from "postgres";

const devices = pgTable("devices", {
  id: text().primaryKey(),
  version: text().notNull(),
  fence: bigint({ mode: "bigint" }).notNull(), // the token of the last write
});

const redis = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379");
const connection = postgres(process.env["DATABASE_URL"] ?? "postgres://127.0.0.1/test", { max: 1 });
const db = drizzle(connection);
await db.execute(
  sql`create temporary table devices (id text primary key, version text not null, fence bigint not null)`,
);
await db.insert(devices).values({ id: "dev-1", version: "none", fence: 0n });

const locks = new LockFactory(new RedisStore(redis), { fencing: true });
const lock = locks.createLock("device:dev-1", { ttlMs: 300 });

const setVersion = async (version: string, fence: bigint) => {
  const changed = await db
    .update(devices)
    .set({ version, fence })
    .where(and(eq(devices.id, "dev-1"), lte(devices.fence, fence)))
    .returning({ id: devices.id });
  return changed.length;
};

// The first holder is stopped in the middle of its write; the second one waits until the first lease has lapsed.
const first = await lock.acquire();
const second = lock.run((lease) => fencedWrite(lease, (fence) => setVersion("2.0", fence)));
const late = fencedWrite(first, async (fence) => {
  await second;
  return setVersion("1.0", fence);
});

const refused = await late.then(
  () => false,
  (error: unknown) => error instanceof LockLostError,
);
const [device] = await db.select().from(devices);
console.log("the late write was refused:", refused && device?.version === "2.0");

await connection.end();
await redis.quit();
