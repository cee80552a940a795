import type { LockStore, OwnedKey } from "@ota/lock-core";
import type { RedisStore } from "@ota/lock-redis";
import type { Redis } from "ioredis";

export type BrokenKind = keyof typeof BROKEN_STORES;

/** Stores with one mistake each, of kinds that were made in the field. The model run must find every one of them. */
export const BROKEN_STORES = {
  /** Releases without asking whose lease it is. */
  "release of any owner": (store: RedisStore, redis: Redis) =>
    changed(store, {
      async release({ key }: OwnedKey) {
        return (await redis.del(key)) === 1 ? "released" : "not-held";
      },
    }),
  /** A renewal of a lease that has ended grants it anew. */
  "renewal that revives": (store: RedisStore, redis: Redis) =>
    changed(store, {
      async promote(request: OwnedKey & { ttlMs: number; fencing?: boolean }) {
        const answer = await store.promote(request);
        if (answer.outcome !== "lost") return answer;
        const end = Date.now() + request.ttlMs;
        await redis.zadd(request.key, end, request.owner, end, "__write__");
        return { outcome: "promoted", fencingToken: BigInt(Date.now()) * 1000n };
      },
    }),
  /** Looks first and takes then, in two steps. */
  "check, then act": (store: RedisStore, redis: Redis) =>
    changed(store, {
      async acquire(request: OwnedKey & { ttlMs: number }) {
        if ((await redis.zcount(request.key, Date.now(), "+inf")) > 0) return { outcome: "contended" };
        const end = Date.now() + request.ttlMs;
        await redis.zadd(request.key, end, request.owner, end, "__write__");
        await redis.pexpireat(request.key, end);
        return { outcome: "granted", fencingToken: BigInt(Date.now()) * 1000n };
      },
    }),
  /** Lets readers in beside a writer. */
  "reader beside a writer": (store: RedisStore, redis: Redis) =>
    changed(store, {
      async acquire(request: OwnedKey & { ttlMs: number; mode?: string }) {
        const answer = await store.acquire(request as never);
        if (answer.outcome === "granted" || request.mode !== "shared") return answer;
        await redis.zadd(request.key, Date.now() + request.ttlMs, request.owner);
        return { outcome: "granted", fencingToken: 1n };
      },
    }),
  /** The same fencing token for everybody. */
  "tokens that do not grow": (store: RedisStore) =>
    changed(store, {
      async acquire(request: never) {
        const answer = await store.acquire(request);
        return answer.outcome === "granted" ? { ...answer, fencingToken: 7n } : answer;
      },
    }),
  /** Leases that end far later than asked for. */
  "leases that stay": (store: RedisStore) =>
    changed(store, {
      async acquire(request: { ttlMs: number }) {
        return store.acquire({ ...request, ttlMs: request.ttlMs * 10_000 } as never);
      },
    }),
} satisfies Record<string, (store: RedisStore, redis: Redis) => LockStore>;

/** The store with other methods. It keeps no line, so that waiters ask by the plain acquire. */
function changed(store: RedisStore, methods: Record<string, unknown>): LockStore {
  const all = [
    "acquire",
    "extend",
    "release",
    "isHeld",
    "promote",
    "demote",
    "inspect",
    "forceRelease",
    "checkFencing",
  ];
  const own = Object.fromEntries(
    all.map((name) => [
      name,
      (request: never) => (store as unknown as Record<string, (r: never) => unknown>)[name]?.(request),
    ]),
  );
  return { name: "broken", reach: "shared", ...own, ...methods } as unknown as LockStore;
}
