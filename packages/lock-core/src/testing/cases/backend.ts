import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { isLockError, isStoreFault, type LockErrorCode } from "../../errors.ts";
import type { LockStore, OwnedKey } from "../../store.ts";
import type { CaseDefinition } from "../contract-case.ts";
import { expectHeld, freshOwner, grant, refuse } from "./asking.ts";

/** How long a backend may take to be reachable again once its fault is over. */
const RECOVERY_MS = 15_000;

/** What else lies in the backend, and what happens when it fails: rules 10, 11 and 17. */
export const backendCases: readonly CaseDefinition[] = [
  {
    id: "foreign-string-counts-as-held",
    rule: 10,
    title: "a string under the key is somebody else's lock: refused, and never touched",
    needs: ["plantString", "contents"],
    async check({ a, backend, longTtlMs: ttlMs }) {
      const owned = freshOwner();
      await backend.plantString(owned.key);
      const planted = await backend.contents(owned.key);
      await refuse(a, { ...owned, ttlMs });
      await expectHeld(a, owned, false);
      assert.equal(await a.extend({ ...owned, ttlMs }), "lost");
      assert.equal(await a.release(owned), "not-held");
      assert.deepEqual(await backend.contents(owned.key), planted);
    },
  },
  {
    id: "foreign-data-is-an-error-of-its-own",
    rule: 10,
    title: "other data under the key is a LockKeyConflictError, and never touched",
    needs: ["plantOther", "contents"],
    async check({ a, backend, longTtlMs: ttlMs }) {
      const owned = freshOwner();
      await backend.plantOther(owned.key);
      const planted = await backend.contents(owned.key);
      await expectCode("LOCK_KEY_CONFLICT", () => a.acquire({ ...owned, ttlMs }));
      for (const ask of [() => a.extend({ ...owned, ttlMs }), () => a.release(owned), () => a.isHeld(owned)]) {
        const answer = await ask().catch((error: unknown) => assert.ok(isLockError(error), `thrown: ${String(error)}`));
        assert.ok(answer !== "extended" && answer !== "released" && answer !== true, `answered: ${String(answer)}`);
      }
      assert.deepEqual(await backend.contents(owned.key), planted);
    },
  },
  {
    id: "a-fault-is-an-error",
    rule: 11,
    title: "while the backend fails, every operation throws a LockStoreError and none says contended, lost or not-held",
    needs: ["breakBackend"],
    async check({ a, backend, longTtlMs: ttlMs }) {
      const owned = freshOwner();
      await grant(a, { ...owned, ttlMs });
      const repair = await backend.breakBackend();
      try {
        await expectCode("LOCK_STORE_FAULT", () => a.acquire({ ...freshOwner(owned.key), ttlMs }));
        await expectCode("LOCK_STORE_FAULT", () => a.extend({ ...owned, ttlMs }));
        await expectCode("LOCK_STORE_FAULT", () => a.isHeld(owned));
        await expectCode("LOCK_STORE_FAULT", () => a.release(owned));
      } finally {
        await repair();
      }
      await answered(a, freshOwner());
    },
  },
  {
    id: "a-fault-leaves-nothing-granted",
    rule: 11,
    title: "what was asked for while the backend failed is free again once it is back, one TTL later at most",
    needs: ["breakBackend"],
    async check({ a, b, backend, shortTtlMs, longTtlMs, lapse }) {
      const failed = freshOwner();
      const repair = await backend.breakBackend();
      try {
        await expectCode("LOCK_STORE_FAULT", () => a.acquire({ ...failed, ttlMs: shortTtlMs }));
      } finally {
        await repair();
      }
      await answered(a, freshOwner());
      await answered(b, freshOwner());
      await lapse(shortTtlMs);
      await expectHeld(a, failed, false);
      await grant(b, { ...freshOwner(failed.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "ttl-comes-with-the-grant",
    rule: 17,
    title: "at no moment does the backend keep a lease that would outlive its TTL",
    needs: ["lifetimeMs"],
    async check({ a, backend, longTtlMs: ttlMs }) {
      for (let round = 0; round < 20; round++) {
        const owned = freshOwner();
        let answeredYet = false;
        const acquiring = grant(a, { ...owned, ttlMs }).finally(() => {
          answeredYet = true;
        });
        acquiring.catch(() => {}); // Awaited below, unless the backend is found wanting first.
        do {
          const lifetimeMs = await backend.lifetimeMs(owned.key);
          // A millisecond more is the rounding of a backend that reads its clock twice.
          assert.ok(lifetimeMs === undefined || lifetimeMs <= ttlMs + 1, `the key would live for ${lifetimeMs} ms`);
        } while (!answeredYet);
        await acquiring;
      }
    },
  },
];

async function expectCode(code: LockErrorCode, ask: () => Promise<unknown>): Promise<void> {
  let answer: unknown;
  try {
    answer = await ask();
  } catch (error) {
    const isExpected = code === "LOCK_STORE_FAULT" ? isStoreFault(error) : isLockError(error) && error.code === code;
    assert.ok(isExpected, `${code} was expected, but thrown was ${String(error)}`);
    return;
  }
  assert.fail(`${code} was expected, but the answer was ${JSON.stringify(answer)}`);
}

/** Asks until the store answers again. */
async function answered(store: LockStore, owned: OwnedKey): Promise<void> {
  for (const giveUpAt = performance.now() + RECOVERY_MS; ; await pause(50)) {
    try {
      await store.isHeld(owned);
      return;
    } catch (error) {
      if (performance.now() >= giveUpAt) throw error;
    }
  }
}
