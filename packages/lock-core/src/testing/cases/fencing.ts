import assert from "node:assert/strict";
import { fencedWrite } from "../../fenced-write.ts";
import { LockFactory } from "../../lock-factory.ts";
import type { AcquireRequest, LockStore } from "../../store.ts";
import { hasInspection, hasSharedLocks } from "../../store-capabilities.ts";
import type { CaseDefinition } from "../contract-case.ts";
import { freshKey, freshOwner, grant } from "./asking.ts";
import { aboutFencing } from "./capability-context.ts";
import { silentLogger as logger } from "./silent-logger.ts";
import { withWallClockOff } from "./wall-clock.ts";

const HOUR_MS = 3_600_000;
/** The largest number that a bigint column of a database holds. */
const MAX_TOKEN = 2n ** 63n - 1n;

/** Tokens that tell a newer writer from an older one: rules 25 and 26. */
export const fencingCases: readonly CaseDefinition[] = aboutFencing([
  {
    id: "each-writer-gets-a-larger-token",
    rule: 25,
    title: "each new exclusive grant of a key gets a larger token than all before, over either connection",
    async check({ a, b, longTtlMs: ttlMs }) {
      const key = freshKey();
      let last = 0n;
      for (let nth = 0; nth < 10; nth++) {
        const store = nth % 2 === 0 ? a : b;
        const writer = freshOwner(key);
        last = larger(await fence(store, { ...writer, ttlMs }), last);
        assert.equal(await store.release(writer), "released");
      }
    },
  },
  {
    id: "token-grows-after-expiry",
    rule: 25,
    title: "the writer after a lapsed one gets a larger token",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const lapsed = freshOwner();
      const token = await fence(a, { ...lapsed, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      larger(await fence(b, { ...freshOwner(lapsed.key), ttlMs: longTtlMs }), token);
    },
  },
  {
    id: "holder-keeps-its-token",
    rule: 25,
    title: "an acquire by the holder gives the token that its lease has, also after an extend",
    async check({ a, b, longTtlMs: ttlMs }) {
      const writer = freshOwner();
      const token = await fence(a, { ...writer, ttlMs });
      assert.equal(await fence(b, { ...writer, ttlMs }), token);
      assert.equal(await b.extend({ ...writer, ttlMs }), "extended");
      assert.equal(await fence(a, { ...writer, ttlMs }), token);
    },
  },
  {
    id: "token-only-when-asked-for",
    rule: 25,
    title: "a grant that was not asked for a token has none, and the tokens go on growing beyond it",
    async check({ a, b, longTtlMs: ttlMs }) {
      const key = freshKey();
      const [first, plain, last] = [freshOwner(key), freshOwner(key), freshOwner(key)];
      const token = await fence(a, { ...first, ttlMs });
      assert.equal(await a.release(first), "released");
      for (const fencing of [undefined, false]) {
        const granted = await grant(b, { ...plain, ttlMs, fencing });
        assert.equal(granted.fencingToken, undefined);
      }
      assert.equal(await b.release(plain), "released");
      larger(await fence(a, { ...last, ttlMs }), token);
    },
  },
  {
    id: "token-outlives-the-counter",
    rule: 25,
    title: "the writer after a loss of the counter gets a larger token",
    needs: ["loseTokens"],
    async check({ a, b, backend, longTtlMs: ttlMs, elapse }) {
      const key = freshKey();
      let last = 0n;
      for (let nth = 0; nth < 3; nth++) {
        const writer = freshOwner(key);
        last = larger(await fence(a, { ...writer, ttlMs }), last);
        assert.equal(await a.release(writer), "released");
      }
      await backend.loseTokens(key);
      await elapse(5);
      larger(await fence(b, { ...freshOwner(key), ttlMs }), last);
    },
  },
  {
    id: "token-grows-by-any-wall-clock",
    rule: 25,
    title: "the writer on a client whose wall clock is an hour behind gets a larger token",
    async check({ a, b, longTtlMs: ttlMs }) {
      const key = freshKey();
      let last = 0n;
      for (const offsetMs of [HOUR_MS, -HOUR_MS, 0]) {
        const writer = freshOwner(key);
        await withWallClockOff(offsetMs, async () => {
          last = larger(await fence(offsetMs === 0 ? b : a, { ...writer, ttlMs }), last);
        });
        assert.equal(await a.release(writer), "released");
      }
    },
  },
  {
    id: "reader-gets-the-current-token",
    rule: 25,
    title: "a reader's token is not below the last writer's, and below the next one's",
    claims: ["shared"],
    async check({ a, b, longTtlMs: ttlMs }) {
      const key = freshKey();
      const [early, before, reader, beside, after] = Array.from({ length: 5 }, () => freshOwner(key));
      assert.ok(early && before && reader && beside && after);
      const first = await fence(a, { ...early, ttlMs, mode: "shared" });
      assert.equal(await a.release(early), "released");
      const last = larger(await fence(a, { ...before, ttlMs }), first);
      assert.equal(await a.release(before), "released");
      const tokens = [
        await fence(a, { ...reader, ttlMs, mode: "shared" }),
        await fence(b, { ...beside, ttlMs, mode: "shared" }),
      ];
      for (const owned of [reader, beside]) assert.equal(await a.release(owned), "released");
      const next = await fence(b, { ...after, ttlMs });
      for (const token of tokens) {
        assert.ok(token >= last, `a reader's ${token} is below the last writer's ${last}`);
        larger(next, token);
      }
    },
  },
  {
    id: "promotion-mints-a-token",
    rule: 25,
    title: "a promotion gives a larger token than any before, and a second promotion the same",
    claims: ["shared"],
    async check({ a, b, longTtlMs: ttlMs }) {
      assert.ok(hasSharedLocks(a));
      const key = freshKey();
      const [writer, reader] = [freshOwner(key), freshOwner(key)];
      const written = await fence(a, { ...writer, ttlMs });
      assert.equal(await a.release(writer), "released");
      const read = await fence(b, { ...reader, ttlMs, mode: "shared" });
      const [promoted, again] = [
        await a.promote({ ...reader, ttlMs, fencing: true }),
        await a.promote({ ...reader, ttlMs, fencing: true }),
      ];
      assert.ok(promoted.outcome === "promoted" && again.outcome === "promoted", "promotion of the only holder");
      larger(larger(promoted.fencingToken, written), read);
      assert.equal(again.fencingToken, promoted.fencingToken);
    },
  },
  {
    id: "demotion-keeps-the-tokens-in-order",
    rule: 25,
    title: "readers beside a demoted writer have no token below its own, and the next writer has a larger one",
    claims: ["shared"],
    async check({ a, b, longTtlMs: ttlMs }) {
      assert.ok(hasSharedLocks(a));
      const key = freshKey();
      const [writer, reader] = [freshOwner(key), freshOwner(key)];
      const written = await fence(a, { ...writer, ttlMs });
      assert.equal(await a.demote({ ...writer, ttlMs }), "demoted");
      const read = await fence(b, { ...reader, ttlMs, mode: "shared" });
      assert.ok(read >= written, `a reader's ${read} is below the writer's ${written}`);
      for (const owned of [writer, reader]) assert.equal(await a.release(owned), "released");
      larger(await fence(b, { ...freshOwner(key), ttlMs }), read);
    },
  },
  {
    id: "token-grows-after-forced-release",
    rule: 25,
    title: "the writer after a forced release gets a larger token",
    claims: ["inspection"],
    async check({ a, b, longTtlMs: ttlMs }) {
      assert.ok(hasInspection(b));
      const removed = freshOwner();
      const token = await fence(a, { ...removed, ttlMs });
      assert.equal(await b.forceRelease({ key: removed.key }), "released");
      larger(await fence(b, { ...freshOwner(removed.key), ttlMs }), token);
    },
  },
  {
    id: "write-with-an-older-token-is-refused",
    rule: 26,
    title: "a holder that was stopped past its end cannot overwrite what the next holder has written",
    async check({ a, b, clock, shortTtlMs, longTtlMs, lapse }) {
      const key = freshKey();
      const lockOn = (store: LockStore, ttlMs: number) =>
        new LockFactory(store, { clock, logger, ttlMs, fencing: true }).createLock(key);
      const row = { fence: 0n, writtenBy: "nobody" };
      const write = (writtenBy: string) => (fencingToken: bigint) => {
        if (row.fence > fencingToken) return 0;
        Object.assign(row, { fence: fencingToken, writtenBy });
        return 1;
      };
      const stopped = await lockOn(a, shortTtlMs).tryAcquire();
      assert.ok(stopped, "acquire of a free key");
      const late = fencedWrite(stopped, async (fencingToken) => {
        await lapse(shortTtlMs);
        const next = await lockOn(b, longTtlMs).tryAcquire();
        assert.ok(next, "acquire of a lapsed lock");
        assert.equal(await fencedWrite(next, write("the next holder")), 1);
        return write("the stopped holder")(fencingToken);
      });
      await assert.rejects(late, { code: "LOCK_LOST" });
      assert.equal(row.writtenBy, "the next holder");
    },
  },
]);

/** Acquires with a token, and insists on both. */
async function fence(store: LockStore, request: AcquireRequest): Promise<bigint> {
  const { fencingToken } = await grant(store, { ...request, fencing: true });
  assert.ok(typeof fencingToken === "bigint", `a grant with the fencing token ${fencingToken}`);
  return fencingToken;
}

/** Insists on a token that is larger than the one before, and gives it. */
function larger(token: bigint | undefined, before: bigint): bigint {
  assert.ok(token !== undefined && token > before && token <= MAX_TOKEN, `the token ${token} after ${before}`);
  return token;
}
