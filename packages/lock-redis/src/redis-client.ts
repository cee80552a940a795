/**
 * What {@link RedisStore} needs of a Redis client: the two commands that run a script, alone or together, and what decides
 * where keys lie. `Redis` and `Cluster` of ioredis 5 and 6 have it. Named by its shape, so that neither the
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
  /** The addresses of each slot's nodes, its owner first, as far as the client knows them. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  /** `keyPrefix` is what the client itself puts in front of keys; `enableAutoPipelining`, that it batches by itself. */
  readonly options?: {
    readonly keyPrefix?: string | undefined;
    readonly enableAutoPipelining?: boolean | undefined;
  };
  /** Commands that leave in one write. Without it each leaves by itself. */
  pipeline?(): RedisPipeline;
}

/** What {@link RedisClient.pipeline} gives. */
export interface RedisPipeline {
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): unknown;
  eval(source: string, keyCount: number, ...keysAndArguments: string[]): unknown;
  wait?(count: number, timeoutMs: number): unknown;
  exec(): Promise<readonly PipelineResult[] | null>;
}

/** The answer to one command of a pipeline. */
export type PipelineResult = readonly [error: unknown, reply?: unknown];

/**
 * A client, or a function that returns the one to use now. The function is asked once for each operation, so that a
 * pool may replace a connection while the store lives on.
 */
export type RedisClientSource = RedisClient | (() => RedisClient);
