import { LockFactory, MemoryStore } from "@ota/lock-core";

const locks = new LockFactory(new MemoryStore());
const nightly = locks.createLock("job:nightly-report", { ttlMs: 60_000 });

async function nightlyReport(worker: string): Promise<string> {
  await using lease = await nightly.tryAcquire(); // one attempt; released at the end of this scope
  if (lease === undefined) return `${worker}: someone else is on it`;
  for (let page = 0; page < 3; page++) {
    if ((await lease.extend()) === "lost") return `${worker}: lost the lock, stopped at page ${page}`;
    // … a page of work that takes far less than a minute …
  }
  return `${worker}: done, with ${Math.round(lease.remainingMs())} ms to spare`;
}

console.log(await Promise.all([nightlyReport("worker 1"), nightlyReport("worker 2")]));
