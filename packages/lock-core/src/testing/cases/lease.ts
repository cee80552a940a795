import assert from "node:assert/strict";
import type { LockErrorCode } from "../../errors.ts";
import { LockFactory } from "../../lock-factory.ts";
import type { CaseContext, CaseDefinition } from "../contract-case.ts";
import { freshKey, freshOwner, grant } from "./asking.ts";
import { silentLogger as logger } from "./silent-logger.ts";
import { SlowStore } from "./slow-store.ts";

/** What locks on the store promise when its answers are slow or unwanted: rules 14 and 28. */
export const leaseCases: readonly CaseDefinition[] = [
  {
    id: "late-grant-is-given-back",
    rule: 14,
    title: "a grant that arrives after its deadline is an error, and is given back",
    async check(context) {
      const { b, clock, shortTtlMs, longTtlMs, lapse } = context;
      const slow = new SlowStore(context.a);
      const lock = new LockFactory(slow, { ttlMs: shortTtlMs, clock, logger }).createLock(freshKey());
      slow.beforeNext = () => lapse(shortTtlMs);
      await rejectsWith("LOCK_STORE_FAULT", lock.tryAcquire());
      assert.equal(await slow.lastRelease, "released");
      await grant(b, { ...freshOwner(lock.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "late-extend-is-lost-and-given-back",
    rule: 14,
    title: "an extend that is answered after the deadline says lost, and the lease is given back",
    async check(context) {
      const { b, clock, shortTtlMs, longTtlMs, lapse } = context;
      const slow = new SlowStore(context.a);
      const lock = new LockFactory(slow, { ttlMs: longTtlMs, clock, logger }).createLock(freshKey());
      const lease = await lock.tryAcquire();
      assert.ok(lease, "acquire of a free key");
      slow.beforeNext = () => lapse(shortTtlMs);
      assert.equal(await lease.extend(shortTtlMs), "lost");
      assert.equal(lease.status, "lost");
      await context.elapse(0);
      assert.equal(await slow.lastRelease, "released");
      await grant(b, { ...freshOwner(lock.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "aborted-acquire-leaves-nothing",
    rule: 28,
    title:
      "an acquire that is aborted in the middle of its request rejects at once, and what it is granted is given back",
    async check(context) {
      const { b, clock, longTtlMs: ttlMs } = context;
      const slow = new SlowStore(context.a);
      const lock = new LockFactory(slow, { ttlMs, clock, logger }).createLock(freshKey());
      const controller = new AbortController();
      const aborted = new Promise<void>((resolve) => controller.signal.addEventListener("abort", () => resolve()));
      slow.beforeNext = () => aborted;
      const acquiring = lock.acquire({ signal: controller.signal });
      const reason = new Error("not needed any more");
      controller.abort(reason);
      await assert.rejects(acquiring, (error) => error === reason);
      await settled(context, () => slow.lastRelease !== undefined);
      assert.equal(await slow.lastRelease, "released");
      await grant(b, { ...freshOwner(lock.key), ttlMs });
    },
  },
  {
    id: "waiting-lock-enters-after-release",
    rule: 30,
    title: "a lock that waits is granted once the holder has released",
    async check(context) {
      const { a, b, clock, longTtlMs: ttlMs, elapse } = context;
      const key = freshKey();
      const held = await new LockFactory(a, { ttlMs, clock, logger }).createLock(key).tryAcquire();
      assert.ok(held, "acquire of a free key");
      let entered = false;
      const waiting = new LockFactory(b, { ttlMs, clock, logger, retryDelayMs: 5, waitTimeoutMs: ttlMs })
        .createLock(key)
        .run(() => {
          entered = true;
        });
      waiting.catch(() => {}); // Awaited below, unless it entered too early.
      await elapse(25);
      assert.equal(entered, false, "entered while the lock was held");
      assert.equal(await held.release(), "released");
      await settled(context, () => entered);
      await waiting;
      assert.ok(entered);
    },
  },
];

/** Lets time pass in small steps until something has come true, for a while. */
async function settled({ elapse }: CaseContext, isTrue: () => boolean): Promise<void> {
  for (let step = 0; step < 1_000 && !isTrue(); step++) await elapse(5);
  assert.ok(isTrue(), "nothing happened for 5 s");
}

async function rejectsWith(code: LockErrorCode, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, { code });
}
