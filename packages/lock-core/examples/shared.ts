import { LockFactory, MemoryStore } from "@ota/lock-core";

const locks = new LockFactory(new MemoryStore());
const catalogue = locks.createLock("catalogue");

// Readers hold the lock together, and keep writers out.
const one = await catalogue.acquire({ mode: "shared" });
const other = await catalogue.acquire({ mode: "shared" });
console.log(await catalogue.tryAcquire()); // undefined

// From reader to writer in one step, so that nobody writes in between: only for the last reader.
console.log(await one.promote(), one.mode); // contended shared
await other.release();
console.log(await one.promote(), one.mode); // promoted exclusive

// And back: others may read on, while nobody can have written in between.
console.log(await one.demote(), one.mode); // demoted shared
await one.release();
