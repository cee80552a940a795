import { LockFactory, LockLostError, MemoryStore } from "@ota/lock-core";

const locks = new LockFactory(new MemoryStore(), {
  ttlMs: 300, // short, so that a process that dies blocks the others for 300 ms only
  autoExtend: true, // a living holder keeps it for as long as the work takes …
  maxHoldMs: 1_000, // … but not for ever: work that hangs loses it
  logger: { debug() {}, info() {}, warn: (_fields, message) => console.log(message), error() {} },
});

async function index(name: string, durationMs: number): Promise<string> {
  return locks.createLock(`index:${name}`).run(async (lease) => {
    await work(durationMs, lease.signal); // for everything that takes a signal: fetch, streams, timers, queries
    lease.assertHeld(); // before each write that must not run beside another holder
    return `${name} is indexed`;
  });
}

console.log(await index("books", 600));
console.log(await index("films", 60_000).catch((error) => error instanceof LockLostError && error.message));

/** Something that takes a while and can be stopped. */
async function work(durationMs: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, durationMs);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
