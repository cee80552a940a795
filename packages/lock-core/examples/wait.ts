import { LockFactory, LockTimeoutError, MemoryStore } from "@ota/lock-core";

const locks = new LockFactory(new MemoryStore());
const lock = locks.createLock("printer");
const held = await lock.acquire();

// By time: gives up after 50 ms.
const timedOut = await lock.acquire({ waitTimeoutMs: 50 }).catch((error: unknown) => error);
console.log(timedOut instanceof LockTimeoutError && timedOut.message);

// By number: asks three times, with up to 20 ms between.
const usedUp = await lock.acquire({ maxAttempts: 3, retryDelayMs: 20 }).catch((error: unknown) => error);
console.log(usedUp instanceof LockTimeoutError && usedUp.attempts);

// By signal: rejects with the signal's reason, also in the middle of a request.
const aborted = await lock.acquire({ signal: AbortSignal.timeout(30) }).catch((error: unknown) => error);
console.log(aborted instanceof Error && aborted.name);

console.log(await held.release(), await held.release());
