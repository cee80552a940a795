export { type LeaseFromPhpKeyOptions, leaseFromPhpKey, type PhpKeyOptions, phpKeyFromLease } from "./php-key.ts";
export type { RedisClient, RedisClientSource } from "./redis-client.ts";
export type { RedisStoreOptions } from "./redis-store.ts";
export { RedisStore } from "./redis-store.ts";
export type { RedisSubscriber } from "./redis-subscriber.ts";
export type { ReplicaOptions } from "./replica-options.ts";
