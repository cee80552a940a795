/**
 * What {@link RedisStore} needs of a Redis client: the two commands that run a script, and what decides the names of the
 * keys that lie beside a lock. `Redis` and `Cluster` of ioredis 5 and 6 have it. Named by its shape, so that neither the
 * code nor the types of this package load ioredis.
 *
 * The store never changes the client: it defines no commands on it, sets no options, attaches no listeners, and closes
 * nothing.
 */
export interface RedisClient {
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(source: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Whether keys live in slots, of which a script may touch one only. */
  readonly isCluster?: boolean;
  /** `keyPrefix` is what the client itself puts in front of keys. */
  readonly options?: { readonly keyPrefix?: string | undefined };
}

/**
 * A client, or a function that returns the one to use now. The function is asked once for each operation, so that a
 * pool may replace a connection while the store lives on.
 */
export type RedisClientSource = RedisClient | (() => RedisClient);
