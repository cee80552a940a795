// What a project that installs the packages may write, with no types but those of the language and the packages.
import {
  CombinedStore,
  type Lease,
  LockFactory,
  type LockStore,
  LockTimeoutError,
  MemoryStore,
  onLockEvent,
} from "@ota/lock-core";
import { ManualClock, storeContract } from "@ota/lock-core/testing";
import { leaseFromPhpKey, type RedisClient, RedisStore } from "@ota/lock-redis";

const store: LockStore = new MemoryStore();
const locks = new LockFactory(store, { ttlMs: 10_000 });

export async function work(): Promise<number> {
  await using lease: Lease = await locks.createLock("a", { fencing: true }).acquire({ waitTimeoutMs: 5 });
  lease.assertHeld();
  lease.signal.addEventListener("abort", () => {});
  const token: bigint | undefined = lease.fencingToken;
  if (token === undefined || lease.signal.aborted) throw lease.signal.reason;
  return locks.createLock("b").run((other) => other.remainingMs(), { mode: "shared", autoExtend: true });
}

export function onRedis(client: RedisClient): LockFactory {
  return new LockFactory(
    new CombinedStore([new RedisStore(client), new RedisStore(() => client, { keyPrefix: "p:" })]),
  );
}

export const restore = (phpKey: string): Promise<Lease | undefined> => locks.restore(leaseFromPhpKey(phpKey));
export const cases = storeContract({ stores: () => [store, store], clock: new ManualClock() });
export const isTimeout = (error: unknown): boolean => error instanceof LockTimeoutError;
export const stop: () => void = onLockEvent("ota:lock:acquired", ({ key, waitMs }) => void [key, waitMs]);
