/**
 * What {@link RedisStore} needs of a Redis client: the two commands that run a script. `Redis` and `Cluster` of ioredis
 * 5 and 6 have them. Named by its shape, so that neither the code nor the types of this package load ioredis.
 *
 * The store never changes the client: it defines no commands on it, sets no options, attaches no listeners, and closes
 * nothing.
 */
export interface RedisClient {
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(source: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/**
 * A client, or a function that returns the one to use now. The function is asked once for each operation, so that a
 * pool may replace a connection while the store lives on.
 */
export type RedisClientSource = RedisClient | (() => RedisClient);
