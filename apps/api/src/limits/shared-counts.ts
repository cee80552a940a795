import type { Redis } from "ioredis";

/** Counts that the processes of an installation keep together. */
export interface SharedCounts {
  /** Adds to a count and returns what it is then. Rejects where that is not known; it may have been added all the same. */
  add(key: string, amount: number): Promise<number>;
}

/** How long a count is kept: longer than any window. */
const KEEP_MS = 180_000;

/** Counts in Redis: `<prefix>ota:limit:<key>`. They may be lost with it; then everybody begins at zero. */
export function redisCounts(redis: Redis, keyPrefix: string): SharedCounts {
  return {
    async add(key, amount) {
      const name = `${keyPrefix}ota:limit:${key}`;
      // Together, so that no count is left without its end.
      const replies = await redis.multi().incrby(name, amount).pexpire(name, KEEP_MS).exec();
      const [error, total] = replies?.[0] ?? [];
      if (typeof total !== "number") throw error ?? new Error("Redis did not run the transaction.");
      return total;
    },
  };
}
