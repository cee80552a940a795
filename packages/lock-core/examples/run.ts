import { LockFactory, LockTimeoutError, MemoryStore } from "@ota/lock-core";

// One store and one factory for the whole application.
const locks = new LockFactory(new MemoryStore(), { ttlMs: 10_000 });

async function settleInvoice(id: number): Promise<string> {
  const lock = locks.createLock(`invoice:${id}`);
  try {
    return await lock.run(
      async (lease) => {
        await readInvoice(id);
        lease.assertHeld(); // throws once the lease has ended, so that nothing is written beside another holder
        return `invoice ${id} settled`;
      },
      { waitTimeoutMs: 2_000 },
    );
  } catch (error) {
    if (error instanceof LockTimeoutError) return `invoice ${id} is being settled by someone else`;
    throw error;
  }
}

async function readInvoice(_id: number): Promise<void> {}

console.log(await Promise.all([settleInvoice(1), settleInvoice(2), settleInvoice(1)]));
