import assert from "node:assert/strict";
import type { CaseDefinition } from "../contract-case.ts";
import { expectHeld, freshOwner, grant } from "./asking.ts";
import { aboutInspection } from "./capability-context.ts";

/** What operators see and may do, by the rules on holding (1), expiry (12) and readers (18). */
export const inspectionCases: readonly CaseDefinition[] = aboutInspection([
  {
    id: "inspection-shows-the-writer",
    rule: 1,
    title:
      "an inspection shows a fresh key as free, a held one with its holder's remaining time, a released one as free",
    async check({ a, b, longTtlMs: ttlMs }) {
      const writer = freshOwner();
      assert.deepEqual(await a.inspect(writer), { mode: "free", holders: [] });
      await grant(a, { ...writer, ttlMs });
      const { mode, holders } = await b.inspect({ key: writer.key });
      assert.deepEqual([mode, holders.length], ["exclusive", 1]);
      const remainingMs = holders[0]?.remainingMs ?? 0;
      assert.ok(remainingMs > ttlMs / 2 && remainingMs <= ttlMs, `${remainingMs} ms remaining of ${ttlMs}`);
      assert.ok(!JSON.stringify(holders).includes(writer.owner), "an owner token is told");
      assert.equal(await a.release(writer), "released");
      assert.deepEqual(await b.inspect(writer), { mode: "free", holders: [] });
    },
  },
  {
    id: "inspection-shows-live-readers",
    rule: 18,
    title: "an inspection shows the live readers, those that end first coming first, and no lapsed one",
    claims: ["shared"],
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const key = freshOwner().key;
      for (const ttlMs of [longTtlMs * 2, shortTtlMs, longTtlMs]) {
        await grant(a, { ...freshOwner(key), ttlMs, mode: "shared" });
      }
      await lapse(shortTtlMs);
      const { mode, holders } = await b.inspect({ key });
      assert.deepEqual([mode, holders.length], ["shared", 2]);
      const [first, last] = holders;
      assert.ok(first && last && first.remainingMs <= longTtlMs && last.remainingMs > longTtlMs, "the remaining times");
    },
  },
  {
    id: "inspection-shows-no-lapsed-writer",
    rule: 12,
    title: "an inspection shows a key whose lease lapsed as free, and its forced release says not-held",
    async check({ a, b, shortTtlMs, lapse }) {
      const writer = freshOwner();
      await grant(a, { ...writer, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      assert.deepEqual(await b.inspect(writer), { mode: "free", holders: [] });
      assert.equal(await b.forceRelease(writer), "not-held");
    },
  },
  {
    id: "inspection-changes-nothing",
    rule: 4,
    title: "an inspection leaves the backend as it was",
    needs: ["contents"],
    async check({ a, b, backend, longTtlMs: ttlMs }) {
      const [free, held] = [freshOwner(), freshOwner()];
      await grant(a, { ...held, ttlMs });
      for (const { key } of [free, held]) {
        const before = await backend.contents(key);
        await b.inspect({ key });
        assert.deepEqual(await backend.contents(key), before);
      }
    },
  },
  {
    id: "forced-release-frees-the-key",
    rule: 12,
    title:
      "a forced release frees the key at once, its former holder can do nothing any more, and no other key is freed",
    async check({ a, b, longTtlMs: ttlMs }) {
      const [removed, untouched] = [freshOwner(), freshOwner()];
      for (const writer of [removed, untouched]) await grant(a, { ...writer, ttlMs });
      assert.equal(await b.forceRelease({ key: removed.key }), "released");
      assert.equal(await b.forceRelease({ key: removed.key }), "not-held");
      await expectHeld(a, removed, false);
      const next = freshOwner(removed.key);
      await grant(b, { ...next, ttlMs });
      assert.equal(await a.extend({ ...removed, ttlMs }), "lost");
      assert.equal(await a.release(removed), "not-held");
      for (const writer of [next, untouched]) await expectHeld(a, writer, true);
    },
  },
  {
    id: "forced-release-removes-all-readers",
    rule: 18,
    title: "a forced release removes all readers",
    claims: ["shared"],
    async check({ a, b, longTtlMs: ttlMs }) {
      const readers = [freshOwner()];
      readers.push(freshOwner(readers[0]?.key));
      for (const reader of readers) await grant(a, { ...reader, ttlMs, mode: "shared" });
      assert.equal(await b.forceRelease({ key: readers[0]?.key ?? "" }), "released");
      for (const reader of readers) await expectHeld(a, reader, false);
      await grant(b, { ...freshOwner(readers[0]?.key), ttlMs });
    },
  },
]);
