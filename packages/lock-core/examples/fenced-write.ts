import { fencedWrite, LockFactory, LockLostError, MemoryStore } from "@ota/lock-core";

const locks = new LockFactory(new MemoryStore(), {
  fencing: true,
  ttlMs: 50,
  logger: { debug() {}, info() {}, warn: (_fields, message) => console.log(message), error() {} },
});
const lock = locks.createLock("device:1");

/** Stands for `update device set version = :version, fence = :fence where id = 1 and fence <= :fence`. */
const device = { version: "1.0", fence: 0n };
function setVersion(version: string, fence: bigint): number {
  if (device.fence > fence) return 0;
  Object.assign(device, { version, fence });
  return 1;
}

// This holder is stopped between its last look at the lease and its write, for longer than the lease lasts …
const stopped = await lock.acquire();
const late = fencedWrite(stopped, async (fence) => {
  await lock.run((lease) => fencedWrite(lease, (newer) => setVersion("2.0", newer))); // … and another one writes.
  return setVersion("1.1", fence);
});

console.log(await late.catch((error: unknown) => error instanceof LockLostError && "refused"));
console.log(device.version); // 2.0
await stopped.release(); // not-held, and warned of: it was lost
