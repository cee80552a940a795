import type { AcquireRequest, LockStore, OwnedKey, PromoteRequest } from "@ota/lock-core";
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
  /** Says of a lease that has ended that it was renewed. */
  "renewal that revives": (store: RedisStore) =>
    changed(store, {
      async promote(request: PromoteRequest) {
        const answer = await store.promote(request);
        if (answer.outcome !== "lost") return answer;
        return { outcome: "promoted", fencingToken: BigInt(Date.now()) * 1000n };
      },
    }),
  /** Looks first and takes then, in two steps. */
  "check, then act": (store: RedisStore, redis: Redis) =>
    changed(store, {
      async acquire(request: AcquireRequest) {
        if ((await redis.zcount(request.key, Date.now(), "+inf")) > 0) return { outcome: "contended" };
        const end = Date.now() + request.ttlMs;
        await redis.zadd(request.key, end, request.owner, end, "__write__");
        await redis.pexpireat(request.key, end);
        return { outcome: "granted", fencingToken: BigInt(Date.now()) * 1000n };
      },
    }),
  /** Lets readers in beside a writer. */
  "reader beside a writer": (store: RedisStore) =>
    changed(store, {
      async acquire(request: AcquireRequest) {
        const answer = await store.acquire(request);
        if (answer.outcome === "granted" || request.mode !== "shared") return answer;
        return { outcome: "granted", fencingToken: 1n };
      },
    }),
  /** The same fencing token for everybody. */
  "tokens that do not grow": (store: RedisStore) =>
    changed(store, {
      async acquire(request: AcquireRequest) {
        const answer = await store.acquire(request);
        return answer.outcome === "granted" ? { ...answer, fencingToken: 7n } : answer;
      },
    }),
  /** Leases that end far later than asked for. */
  "leases that stay": (store: RedisStore) =>
    changed(store, {
      async acquire(request: AcquireRequest) {
        return store.acquire({ ...request, ttlMs: request.ttlMs * 10_000 });
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
