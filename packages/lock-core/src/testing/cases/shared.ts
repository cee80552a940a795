import assert from "node:assert/strict";
import type { LockMode } from "../../store.ts";
import type { CaseDefinition } from "../contract-case.ts";
import { expectHeld, freshKey, freshOwner, grant, refuse } from "./asking.ts";
import { aboutSharedLocks } from "./capability-context.ts";

const mode: LockMode = "shared";

/** Readers beside each other, and writers kept out: rules 18 to 20. */
export const sharedCases: readonly CaseDefinition[] = aboutSharedLocks([
  {
    id: "many-readers-at-once",
    rule: 18,
    title: "many readers hold a key at once, and each is known by its own owner only",
    async check({ a, b, longTtlMs: ttlMs }) {
      const first = freshOwner();
      const others = [freshOwner(first.key), freshOwner(first.key)];
      await grant(a, { ...first, ttlMs, mode });
      for (const reader of others) await expectHeld(b, reader, false);
      for (const reader of others) await grant(b, { ...reader, ttlMs, mode });
      for (const reader of [first, ...others]) await expectHeld(a, reader, true);
      await expectHeld(a, freshOwner(first.key), false);
    },
  },
  {
    id: "writer-is-refused-beside-a-reader",
    rule: 18,
    title: "a writer is refused while any reader is live, and holds nothing once the reader has left",
    async check({ a, b, longTtlMs: ttlMs }) {
      const reader = freshOwner();
      const writer = freshOwner(reader.key);
      await grant(a, { ...reader, ttlMs, mode });
      for (const store of [a, b]) await refuse(store, { ...writer, ttlMs });
      await expectHeld(b, writer, false);
      await expectHeld(b, reader, true);
      assert.equal(await a.release(reader), "released");
      await expectHeld(b, writer, false);
      await grant(b, { ...freshOwner(reader.key), ttlMs });
    },
  },
  {
    id: "reader-is-refused-beside-a-writer",
    rule: 18,
    title: "a reader is refused while a writer is live, and holds nothing once the writer has left",
    async check({ a, b, longTtlMs: ttlMs }) {
      const writer = freshOwner();
      const reader = freshOwner(writer.key);
      await grant(a, { ...writer, ttlMs });
      for (const store of [a, b]) await refuse(store, { ...reader, ttlMs, mode });
      await expectHeld(b, reader, false);
      await expectHeld(b, writer, true);
      assert.equal(await a.release(writer), "released");
      await expectHeld(b, reader, false);
      await grant(b, { ...freshOwner(writer.key), ttlMs });
    },
  },
  {
    id: "refusal-between-modes-leaves-no-trace",
    rule: 18,
    title: "a writer refused beside readers, or a reader beside a writer, leaves the backend as it was",
    needs: ["contents"],
    async check({ a, b, backend, longTtlMs: ttlMs }) {
      const held = [freshOwner(), freshOwner()] as const;
      await grant(a, { ...held[0], ttlMs, mode });
      await grant(a, { ...held[1], ttlMs });
      const refused = [freshOwner(held[0].key), freshOwner(held[1].key)] as const;
      const before = [await backend.contents(held[0].key), await backend.contents(held[1].key)];
      await refuse(b, { ...refused[0], ttlMs: ttlMs * 2 });
      await refuse(b, { ...refused[1], ttlMs: ttlMs * 2, mode });
      for (const stranger of refused) {
        assert.equal(await b.extend({ ...stranger, ttlMs: ttlMs * 2 }), "lost");
        assert.equal(await b.release(stranger), "not-held");
      }
      assert.deepEqual([await backend.contents(held[0].key), await backend.contents(held[1].key)], before);
    },
  },
  {
    id: "a-race-has-one-writer-or-readers",
    rule: 18,
    title: "of readers and writers that ask at the same moment, one writer is granted or all readers are",
    async check({ a, b, mayRefuseAll, longTtlMs: ttlMs }) {
      for (let round = 0; round < 5; round++) {
        const key = freshKey();
        const racers = Array.from({ length: 20 }, (_, nth) => {
          const asked: LockMode = (nth + round) % 3 === 0 ? "exclusive" : "shared";
          return { request: { ...freshOwner(key), ttlMs, mode: asked }, store: nth % 2 === 0 ? a : b };
        });
        const results = await Promise.all(racers.map(({ store, request }) => store.acquire(request)));
        const granted = racers.filter((_, nth) => results[nth]?.outcome === "granted");
        const writers = granted.filter(({ request }) => request.mode === "exclusive");
        assert.ok(mayRefuseAll || granted.length > 0, "nobody was granted a free key");
        assert.ok(
          writers.length === 0 || granted.length === 1,
          `${writers.length} writers of ${granted.length} grants`,
        );
      }
    },
  },
  {
    id: "reader-is-granted-again",
    rule: 6,
    title: "an acquire by a reader that holds the key succeeds, is not counted and starts its TTL anew",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const [prolonged, shortened, released] = [freshOwner(), freshOwner(), freshOwner()];
      await grant(a, { ...prolonged, ttlMs: shortTtlMs, mode });
      await grant(b, { ...prolonged, ttlMs: longTtlMs, mode });
      await grant(a, { ...shortened, ttlMs: longTtlMs, mode });
      await grant(b, { ...shortened, ttlMs: shortTtlMs, mode });
      for (let time = 0; time < 3; time++) await grant(a, { ...released, ttlMs: longTtlMs, mode });
      assert.equal(await a.release(released), "released");
      await grant(b, { ...freshOwner(released.key), ttlMs: longTtlMs });
      await lapse(shortTtlMs);
      await expectHeld(a, prolonged, true);
      await expectHeld(a, shortened, false);
    },
  },
  {
    id: "readers-leave-independently",
    rule: 19,
    title: "a reader that leaves takes no other with it, and a writer enters only after the last",
    async check({ a, b, longTtlMs: ttlMs }) {
      const [first, second] = [freshOwner(), freshOwner()];
      const readers = [first, { ...second, key: first.key }, freshOwner(first.key)];
      const writer = freshOwner(first.key);
      for (const reader of readers) await grant(a, { ...reader, ttlMs, mode });
      for (const [nth, reader] of readers.entries()) {
        await refuse(b, { ...writer, ttlMs });
        assert.equal(await b.release(reader), "released");
        assert.equal(await a.release(reader), "not-held");
        for (const [later, other] of readers.entries()) await expectHeld(a, other, later > nth);
      }
      await grant(b, { ...writer, ttlMs });
    },
  },
  {
    id: "release-by-a-stranger-leaves-the-readers",
    rule: 19,
    title: "a release or extend by nobody's owner changes nothing for the readers",
    async check({ a, b, longTtlMs: ttlMs }) {
      const [reader, stranger] = [freshOwner(), freshOwner()];
      const other = freshOwner(reader.key);
      for (const owned of [reader, other]) await grant(a, { ...owned, ttlMs, mode });
      assert.equal(await b.release({ ...stranger, key: reader.key }), "not-held");
      assert.equal(await b.extend({ ...stranger, key: reader.key, ttlMs }), "lost");
      for (const owned of [reader, other]) await expectHeld(a, owned, true);
    },
  },
  {
    id: "dead-reader-blocks-nobody",
    rule: 20,
    title: "a reader whose lease lapsed blocks no writer, though another reader kept the key alive until now",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const [dead, alive] = [freshOwner(), freshOwner()];
      const reader = { ...alive, key: dead.key };
      await grant(a, { ...reader, ttlMs: longTtlMs, mode });
      await grant(a, { ...dead, ttlMs: shortTtlMs, mode });
      await lapse(shortTtlMs);
      assert.equal(await b.release(reader), "released");
      await grant(b, { ...freshOwner(dead.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "dead-reader-is-not-kept-alive",
    rule: 20,
    title: "a reader whose lease lapsed is held, extended and released no more, though another reader is live",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const dead = freshOwner();
      const reader = freshOwner(dead.key);
      await grant(a, { ...dead, ttlMs: shortTtlMs, mode });
      await grant(b, { ...reader, ttlMs: longTtlMs, mode });
      assert.equal(await b.extend({ ...reader, ttlMs: longTtlMs }), "extended");
      await lapse(shortTtlMs);
      await expectHeld(a, dead, false);
      assert.equal(await a.extend({ ...dead, ttlMs: longTtlMs }), "lost");
      assert.equal(await a.release(dead), "not-held");
      await expectHeld(a, reader, true);
    },
  },
  {
    id: "short-ttl-shortens-nobody",
    rule: 20,
    title: "a reader with a short TTL, granted, extended or released, shortens no other reader's lease",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const reader = freshOwner();
      const [short, extended, released] = [freshOwner(reader.key), freshOwner(reader.key), freshOwner(reader.key)];
      await grant(a, { ...reader, ttlMs: longTtlMs, mode });
      for (const other of [short, extended, released]) await grant(b, { ...other, ttlMs: shortTtlMs, mode });
      assert.equal(await b.extend({ ...extended, ttlMs: shortTtlMs }), "extended");
      assert.equal(await b.release(released), "released");
      await lapse(shortTtlMs);
      await expectHeld(a, reader, true);
      await refuse(b, { ...freshOwner(reader.key), ttlMs: longTtlMs });
      await grant(b, { ...freshOwner(reader.key), ttlMs: longTtlMs, mode });
    },
  },
]);
