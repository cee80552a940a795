import assert from "node:assert/strict";
import type { LockMode, OwnedKey } from "../../store.ts";
import type { SharedLockStore } from "../../store-capabilities.ts";
import type { CaseDefinition } from "../contract-case.ts";
import { expectHeld, freshKey, freshOwner, grant, refuse } from "./asking.ts";
import { aboutSharedLocks } from "./capability-context.ts";

const mode: LockMode = "shared";

/** From reader to writer and back: rules 21 and 22. */
export const modeChangeCases: readonly CaseDefinition[] = aboutSharedLocks([
  {
    id: "sole-reader-promotes",
    rule: 21,
    title: "the only reader is promoted, keeps readers and writers out, and frees the key by one release",
    async check({ a, b, longTtlMs: ttlMs }) {
      const reader = freshOwner();
      await grant(a, { ...reader, ttlMs, mode });
      await promote(b, { ...reader, ttlMs });
      await expectHeld(a, reader, true);
      await refuse(b, { ...freshOwner(reader.key), ttlMs, mode });
      await refuse(b, { ...freshOwner(reader.key), ttlMs });
      assert.equal(await b.release(reader), "released");
      await grant(a, { ...freshOwner(reader.key), ttlMs });
    },
  },
  {
    id: "promotion-is-refused-beside-readers",
    rule: 21,
    title: "a reader beside another is refused its promotion and keeps its lease: its mode and its end",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const reader = freshOwner();
      const other = freshOwner(reader.key);
      await grant(a, { ...reader, ttlMs: longTtlMs, mode });
      await grant(b, { ...other, ttlMs: longTtlMs, mode });
      for (const owned of [reader, other]) {
        assert.deepEqual(await a.promote({ ...owned, ttlMs: shortTtlMs }), { outcome: "contended" });
      }
      await grant(b, { ...freshOwner(reader.key), ttlMs: shortTtlMs, mode });
      await lapse(shortTtlMs);
      for (const owned of [reader, other]) await expectHeld(b, owned, true);
      assert.equal(await b.release(other), "released");
      await refuse(b, { ...freshOwner(reader.key), ttlMs: longTtlMs });
      await promote(a, { ...reader, ttlMs: longTtlMs });
    },
  },
  {
    id: "refused-promotion-leaves-no-trace",
    rule: 21,
    title: "a promotion that is refused leaves the backend as it was",
    needs: ["contents"],
    async check({ a, b, backend, longTtlMs: ttlMs }) {
      const reader = freshOwner();
      await grant(a, { ...reader, ttlMs, mode });
      await grant(b, { ...freshOwner(reader.key), ttlMs, mode });
      const before = await backend.contents(reader.key);
      await a.promote({ ...reader, ttlMs: ttlMs * 2 });
      await a.promote({ ...freshOwner(reader.key), ttlMs: ttlMs * 2 });
      assert.deepEqual(await backend.contents(reader.key), before);
    },
  },
  {
    id: "lapsed-reader-is-not-promoted",
    rule: 21,
    title: "a promotion of a lapsed lease says lost: with the key free, with another reader on it, with a writer on it",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const [onFree, withReader, withWriter] = [freshOwner(), freshOwner(), freshOwner()];
      for (const reader of [onFree, withReader, withWriter]) await grant(a, { ...reader, ttlMs: shortTtlMs, mode });
      const other = freshOwner(withReader.key);
      await grant(b, { ...other, ttlMs: longTtlMs, mode });
      await lapse(shortTtlMs);
      const writer = freshOwner(withWriter.key);
      await grant(b, { ...writer, ttlMs: longTtlMs });
      for (const reader of [onFree, withReader, withWriter]) {
        assert.deepEqual(await a.promote({ ...reader, ttlMs: longTtlMs }), { outcome: "lost" });
        await expectHeld(a, reader, false);
      }
      await grant(b, { ...freshOwner(onFree.key), ttlMs: longTtlMs });
      await promote(b, { ...other, ttlMs: longTtlMs });
      await expectHeld(b, writer, true);
    },
  },
  {
    id: "promotion-races-with-a-new-reader",
    rule: 21,
    title: "of a promotion and a new reader at the same moment, one alone succeeds",
    async check({ a, b, mayRefuseAll, longTtlMs: ttlMs }) {
      const expected = ["promoted, contended", "contended, granted", ...(mayRefuseAll ? ["contended, contended"] : [])];
      for (let round = 0; round < 10; round++) {
        const reader = freshOwner();
        await grant(a, { ...reader, ttlMs, mode });
        const joining = () => b.acquire({ ...freshOwner(reader.key), ttlMs, mode });
        const promoting = () => a.promote({ ...reader, ttlMs });
        const [promoted, joined] =
          round % 2 === 0
            ? await Promise.all([promoting(), joining()])
            : await Promise.all([joining(), promoting()]).then(([one, other]) => [other, one] as const);
        const outcomes = `${promoted.outcome}, ${joined.outcome}`;
        assert.ok(expected.includes(outcomes), outcomes);
      }
    },
  },
  {
    id: "no-writer-enters-during-a-change",
    rule: 22,
    title: "while a holder is promoted and demoted over and over, nobody else is granted the key exclusively",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      for (let round = 0; round < 20; round++) {
        const tries = Array.from({ length: 3 }, () => b.acquire({ ...freshOwner(holder.key), ttlMs }));
        const change = round % 2 === 0 ? a.demote({ ...holder, ttlMs }) : a.promote({ ...holder, ttlMs });
        const more = Array.from({ length: 3 }, () => b.acquire({ ...freshOwner(holder.key), ttlMs }));
        await change;
        for (const { outcome } of await Promise.all([...tries, ...more])) assert.equal(outcome, "contended");
        await expectHeld(b, holder, true);
      }
    },
  },
  {
    id: "writer-demotes",
    rule: 22,
    title: "a writer is demoted, readers may join, and a writer may not",
    async check({ a, b, longTtlMs: ttlMs }) {
      const writer = freshOwner();
      const reader = freshOwner(writer.key);
      await grant(a, { ...writer, ttlMs });
      assert.equal(await b.demote({ ...writer, ttlMs }), "demoted");
      await expectHeld(a, writer, true);
      await refuse(b, { ...freshOwner(writer.key), ttlMs });
      await grant(b, { ...reader, ttlMs, mode });
      assert.equal(await a.release(writer), "released");
      await expectHeld(a, reader, true);
      await refuse(a, { ...writer, ttlMs });
    },
  },
  {
    id: "demotion-needs-a-live-lease",
    rule: 22,
    title: "a demotion of a lapsed lease, or by a stranger, says lost and gives nothing",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const [lapsed, stranger] = [freshOwner(), freshOwner()];
      await grant(a, { ...lapsed, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      const writer = { ...freshOwner(), key: stranger.key };
      await grant(b, { ...writer, ttlMs: longTtlMs });
      for (const owned of [lapsed, stranger]) {
        assert.equal(await a.demote({ ...owned, ttlMs: longTtlMs }), "lost");
        await expectHeld(a, owned, false);
      }
      await grant(b, { ...freshOwner(lapsed.key), ttlMs: longTtlMs });
      await refuse(a, { ...freshOwner(writer.key), ttlMs: longTtlMs, mode });
    },
  },
  {
    id: "mode-change-starts-the-ttl-anew",
    rule: 22,
    title: "a promotion or demotion sets the lease's end anew, later or earlier",
    async check({ a, shortTtlMs, longTtlMs, lapse }) {
      const [promotedLater, promotedEarlier, demotedLater, demotedEarlier] = Array.from({ length: 4 }, () =>
        freshOwner(),
      ) as [OwnedKey, OwnedKey, OwnedKey, OwnedKey];
      await grant(a, { ...promotedLater, ttlMs: shortTtlMs, mode });
      await grant(a, { ...promotedEarlier, ttlMs: longTtlMs, mode });
      await grant(a, { ...demotedLater, ttlMs: shortTtlMs });
      await grant(a, { ...demotedEarlier, ttlMs: longTtlMs });
      await promote(a, { ...promotedLater, ttlMs: longTtlMs });
      await promote(a, { ...promotedEarlier, ttlMs: shortTtlMs });
      assert.equal(await a.demote({ ...demotedLater, ttlMs: longTtlMs }), "demoted");
      assert.equal(await a.demote({ ...demotedEarlier, ttlMs: shortTtlMs }), "demoted");
      await lapse(shortTtlMs);
      for (const owned of [promotedLater, demotedLater]) await expectHeld(a, owned, true);
      for (const owned of [promotedEarlier, demotedEarlier]) await expectHeld(a, owned, false);
    },
  },
  {
    id: "mode-change-may-be-sent-twice",
    rule: 22,
    title: "a promotion of a writer and a demotion of a reader succeed and change no mode",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      await promote(a, { ...holder, ttlMs });
      await refuse(b, { ...freshOwner(holder.key), ttlMs, mode });
      for (let time = 0; time < 2; time++) assert.equal(await a.demote({ ...holder, ttlMs }), "demoted");
      await grant(b, { ...freshOwner(holder.key), ttlMs, mode });
      assert.equal(await a.demote({ ...holder, ttlMs }), "demoted");
      await grant(b, { ...freshOwner(holder.key), ttlMs, mode });
    },
  },
  {
    id: "holder-changes-mode-by-acquire",
    rule: 22,
    title: "an acquire by a holder in the other mode promotes or demotes it, where no other holder stands against that",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      const other = freshOwner(holder.key);
      await grant(a, { ...holder, ttlMs });
      await grant(a, { ...holder, ttlMs, mode });
      await grant(b, { ...other, ttlMs, mode });
      await refuse(a, { ...holder, ttlMs });
      for (const owned of [holder, other]) await expectHeld(b, owned, true);
      assert.equal(await b.release(other), "released");
      await grant(a, { ...holder, ttlMs });
      await refuse(b, { ...other, ttlMs, mode });
    },
  },
  {
    id: "mode-changes-leave-nothing-behind",
    rule: 22,
    title: "after any sequence of promotions, demotions and releases the backend keeps nothing of the lock",
    needs: ["contents"],
    async check({ a, b, backend, longTtlMs: ttlMs }) {
      const key = freshKey();
      const before = await backend.contents(key);
      const [one, other] = [freshOwner(key), freshOwner(key)];
      await grant(a, { ...one, ttlMs, mode });
      await promote(a, { ...one, ttlMs });
      assert.equal(await a.demote({ ...one, ttlMs }), "demoted");
      await grant(b, { ...other, ttlMs, mode });
      await a.promote({ ...one, ttlMs });
      assert.equal(await a.release(one), "released");
      await promote(b, { ...other, ttlMs });
      await a.demote({ ...one, ttlMs });
      assert.equal(await b.release(other), "released");
      await a.promote({ ...one, ttlMs });
      await b.demote({ ...other, ttlMs });
      assert.deepEqual(await backend.contents(key), before);
    },
  },
]);

/** Promotes, and insists on it. */
async function promote(store: SharedLockStore, request: OwnedKey & { readonly ttlMs: number }): Promise<void> {
  const { outcome } = await store.promote(request);
  assert.equal(outcome, "promoted", "promotion of the only holder");
}
