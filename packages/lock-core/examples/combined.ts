import { CombinedStore, LockFactory, LockQuorumError, type LockStore, MemoryStore } from "@ota/lock-core";

// Three stores that fail independently: in earnest, `new RedisStore(client)` on a server of its own each.
const stores: LockStore[] = [new MemoryStore(), new MemoryStore(), new MemoryStore()];
const locks = new LockFactory(new CombinedStore(stores, { strategy: "consensus", storeTimeoutMs: 200 }));

console.log(await locks.createLock("job").run(() => "two of three stores agreed"));

for (const store of stores.slice(1)) store.acquire = () => Promise.reject(new Error("connection refused"));
try {
  await locks.createLock("job").acquire();
} catch (error) {
  if (!(error instanceof LockQuorumError)) throw error;
  console.log(error.votes.map((vote) => vote.outcome ?? vote.error?.code ?? "not asked in time"));
}
