import { randomUUID } from "node:crypto";
import { LockFactory, type LockStore, MemoryStore } from "@ota/lock-core";
import { RedisStore } from "@ota/lock-redis";
import { Redis } from "ioredis";
import type { Logger } from "pino";
import type { LockConfig } from "./config.ts";

/** The lock store of the service, opened. */
export interface Locks {
  readonly kind: "memory" | "redis";
  readonly factory: LockFactory;
  /** Whether leases can carry tokens that grow from process to process: those of a memory begin anew with each process. */
  readonly fencing: boolean;
  /** The connection to Redis, for what else the processes share; its commands fail at once while there is none. */
  readonly redis: Redis | undefined;
  /** Takes a lock of its own and gives it back. Rejects where the store cannot do that now. */
  probe(): Promise<void>;
  /** Ends the connection. Locks that are still held end with their TTL. */
  close(): Promise<void>;
}

/** What {@link openLocks} needs of the configuration. */
export type OpenLocksOptions = Pick<LockConfig, "redisUrl" | "keyPrefix" | "operationTimeoutMs" | "ttlMs"> & {
  readonly logger: Logger;
};

/** Opens the lock store: Redis where there is a URL, else memory. A Redis that is away now is connected to when it is back. */
export async function openLocks(options: OpenLocksOptions): Promise<Locks> {
  const { redisUrl, logger } = options;
  if (redisUrl === undefined)
    return locksOn({ kind: "memory", redis: undefined, store: new MemoryStore(), close: async () => {} }, options);

  const client = createRedisClient(redisUrl, options.operationTimeoutMs);
  reportConnection(client, logger);
  // Reported by the listener; the service starts without its locks, and says so in its readiness.
  await client.connect().catch(() => {});
  const store = new RedisStore(client, { commandTimeoutMs: options.operationTimeoutMs });
  return locksOn({ kind: "redis", redis: client, store, close: async () => client.disconnect() }, options);
}

function locksOn(
  { kind, redis, store, close }: Pick<Locks, "kind" | "redis" | "close"> & { readonly store: LockStore },
  { keyPrefix, ttlMs, logger }: OpenLocksOptions,
): Locks {
  const factory = new LockFactory(store, { ttlMs, logger });
  return {
    kind,
    factory,
    fencing: kind === "redis",
    redis,
    async probe() {
      const lease = await factory.createLock(`${keyPrefix}ota:probe:${randomUUID()}`, { ttlMs: 1000 }).tryAcquire();
      await lease?.release();
    },
    close,
  };
}

/** How long a connection on which nothing is answered is waited for before it is given up and made anew. */
const SOCKET_TIMEOUT_MS = 2000;

/**
 * A client whose commands fail at once while there is no connection, and are never sent twice: the store has its own
 * deadline, and a lock that is granted after its caller has gone helps nobody.
 */
function createRedisClient(url: string, operationTimeoutMs: number): Redis {
  return new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: Math.max(1000, operationTimeoutMs),
    socketTimeout: Math.max(SOCKET_TIMEOUT_MS, 2 * operationTimeoutMs),
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), 1000) * (0.5 + Math.random() / 2),
    connectionName: "ota-api",
  });
}

/** One line when the connection is lost and one when it is back, however many attempts lie between. */
function reportConnection(client: Redis, logger: Logger): void {
  let lost = false;
  client.on("error", (error: Error) => {
    if (!lost) logger.warn({ err: error }, "the lock store's Redis is not reachable");
    lost = true;
  });
  client.on("ready", () => {
    if (lost) logger.info("the lock store's Redis is reachable again");
    lost = false;
  });
}
