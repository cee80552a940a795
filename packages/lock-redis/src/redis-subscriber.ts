import type { RedisClient } from "./redis-client.ts";

/**
 * What {@link RedisStore} needs of a client to be woken by a release. `Redis` and `Cluster` of ioredis 5 and 6 have it; a
 * Cluster must have been made with `shardedSubscribers: true`. It is put into subscriber mode, so it cannot be the client
 * of a store.
 */
export interface RedisSubscriber {
  readonly status: string;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  sunsubscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...args: string[]) => void): unknown;
  off(event: string, listener: (...args: string[]) => void): unknown;
  connect(): Promise<unknown>;
  disconnect(): void;
}

/**
 * A client for subscriptions, made after `client` and not connected yet; `undefined` where the client cannot be copied. It
 * does not reconnect by itself: a new one is made when it is needed again. So nothing goes on when nobody waits.
 */
export function duplicateForSubscriptions(client: RedisClient): RedisSubscriber | undefined {
  const { duplicate } = client as { readonly duplicate?: (...options: unknown[]) => RedisSubscriber };
  if (typeof duplicate !== "function") return undefined;
  const common = { lazyConnect: true, enableOfflineQueue: true, keyPrefix: "" };
  const forOne = { ...common, autoResubscribe: false, retryStrategy: () => null };
  const forCluster = { ...common, shardedSubscribers: true, clusterRetryStrategy: () => null };
  return client.isCluster === true ? duplicate.call(client, [], forCluster) : duplicate.call(client, forOne);
}

/** Lets the process end while the connection is open. A Cluster's connections are out of reach. */
export function unrefConnection(subscriber: RedisSubscriber): void {
  const { stream } = subscriber as { readonly stream?: { unref?: () => void } };
  stream?.unref?.();
}
