import assert from "node:assert/strict";
import type { CaseDefinition } from "../contract-case.ts";
import { expectHeld, freshKey, freshOwner, grant, refuse } from "./asking.ts";

/** Who holds a key, and who does not: rules 1 to 8. */
export const ownershipCases: readonly CaseDefinition[] = [
  {
    id: "fresh-key-is-free",
    rule: 1,
    title: "a key that was never used is held by nobody",
    async check({ a }) {
      const owned = freshOwner();
      await expectHeld(a, owned, false);
      assert.equal(await a.release(owned), "not-held");
      assert.equal(await a.extend({ ...owned, ttlMs: 1_000 }), "lost");
      await expectHeld(a, owned, false);
    },
  },
  {
    id: "held-from-acquire-to-release",
    rule: 1,
    title: "a key is held from its acquire to its release",
    async check({ a, longTtlMs: ttlMs }) {
      const owned = freshOwner();
      await grant(a, { ...owned, ttlMs });
      await expectHeld(a, owned, true);
      assert.equal(await a.release(owned), "released");
      await expectHeld(a, owned, false);
    },
  },
  {
    id: "keys-are-independent",
    rule: 2,
    title: "what happens to one key changes nothing for another",
    async check({ a, longTtlMs: ttlMs }) {
      const one = freshOwner();
      const other = freshOwner();
      const below = freshOwner(`${one.key}:below`);
      for (const owned of [one, other, below]) await grant(a, { ...owned, ttlMs });
      assert.equal(await a.release(one), "released");
      await expectHeld(a, other, true);
      await expectHeld(a, below, true);
      await grant(a, { ...one, ttlMs });
      assert.equal(await a.release(below), "released");
      await expectHeld(a, one, true);
      await expectHeld(a, other, true);
    },
  },
  {
    id: "one-owner-may-hold-several-keys",
    rule: 2,
    title: "an owner token is bound to no key",
    async check({ a, longTtlMs: ttlMs }) {
      const one = freshOwner();
      const other = { ...one, key: freshKey() };
      await grant(a, { ...one, ttlMs });
      await grant(a, { ...other, ttlMs });
      assert.equal(await a.release(one), "released");
      await expectHeld(a, other, true);
    },
  },
  {
    id: "is-held-asks-for-the-owner",
    rule: 3,
    title: "isHeld says whether this owner holds the key, not whether somebody does",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      const stranger = freshOwner(holder.key);
      await grant(a, { ...holder, ttlMs });
      await expectHeld(a, stranger, false);
      await expectHeld(b, stranger, false);
      await expectHeld(b, holder, true);
    },
  },
  {
    id: "owners-are-compared-exactly",
    rule: 3,
    title: "owner tokens that differ in case, at their end or by a blank are different owners",
    async check({ a, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      const { owner } = holder;
      for (const alike of [owner.toLowerCase(), owner.toUpperCase(), owner.slice(0, -1), `${owner} `, `${owner}=`]) {
        const stranger = { key: holder.key, owner: alike };
        await expectHeld(a, stranger, false);
        await refuse(a, { ...stranger, ttlMs });
        assert.equal(await a.release(stranger), "not-held");
      }
      await expectHeld(a, holder, true);
    },
  },
  {
    id: "second-owner-is-refused",
    rule: 4,
    title: "a second owner is refused while a lease is live, on either connection",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      await refuse(a, { ...freshOwner(holder.key), ttlMs });
      await refuse(b, { ...freshOwner(holder.key), ttlMs });
    },
  },
  {
    id: "refusal-changes-nothing-for-the-holder",
    rule: 4,
    title: "a refusal leaves the holder its lease, neither shortened nor prolonged",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const keeps = freshOwner();
      await grant(a, { ...keeps, ttlMs: longTtlMs });
      await refuse(b, { ...freshOwner(keeps.key), ttlMs: shortTtlMs });
      const lapses = freshOwner();
      await grant(a, { ...lapses, ttlMs: shortTtlMs });
      await refuse(b, { ...freshOwner(lapses.key), ttlMs: longTtlMs });
      await lapse(shortTtlMs);
      await expectHeld(a, keeps, true);
      await expectHeld(a, lapses, false);
    },
  },
  {
    id: "refusal-gives-the-refused-nothing",
    rule: 4,
    title: "a refused owner holds nothing, then or after the holder has left",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      const refused = freshOwner(holder.key);
      await grant(a, { ...holder, ttlMs });
      await refuse(b, { ...refused, ttlMs });
      await expectHeld(b, refused, false);
      assert.equal(await b.extend({ ...refused, ttlMs }), "lost");
      assert.equal(await b.release(refused), "not-held");
      await refuse(b, { ...refused, ttlMs });
      assert.equal(await a.release(holder), "released");
      await expectHeld(b, refused, false);
      await grant(a, { ...freshOwner(holder.key), ttlMs });
    },
  },
  {
    id: "refusal-leaves-no-trace",
    rule: 4,
    title: "a refused acquire, extend or release leaves the backend as it was",
    needs: ["contents"],
    async check({ a, b, backend, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      const stranger = freshOwner(holder.key);
      await grant(a, { ...holder, ttlMs });
      const before = await backend.contents(holder.key);
      await refuse(b, { ...stranger, ttlMs: ttlMs * 2 });
      await b.extend({ ...stranger, ttlMs: ttlMs * 2 });
      await b.release(stranger);
      assert.deepEqual(await backend.contents(holder.key), before);
    },
  },
  {
    id: "a-race-has-one-winner",
    rule: 4,
    title: "of many owners that ask at the same moment exactly one is granted",
    async check({ a, b, mayRefuseAll, longTtlMs: ttlMs }) {
      for (let round = 0; round < 5; round++) {
        const key = freshKey();
        const racers = Array.from({ length: 20 }, () => freshOwner(key));
        const results = await Promise.all(
          racers.map((racer, index) => (index % 2 === 0 ? a : b).acquire({ ...racer, ttlMs })),
        );
        const granted = racers.filter((_, index) => results[index]?.outcome === "granted");
        assert.ok(
          granted.length === 1 || (mayRefuseAll && granted.length === 0),
          `${granted.length} grants in one race`,
        );
        const held = await Promise.all(racers.map((racer) => a.isHeld(racer)));
        assert.equal(held.filter(Boolean).length, granted.length, "holders after the race");
      }
    },
  },
  {
    id: "next-owner-enters-after-release",
    rule: 5,
    title: "once the holder has released, the other owner is granted and the answers flip",
    async check({ a, b, longTtlMs: ttlMs }) {
      const first = freshOwner();
      const second = freshOwner(first.key);
      await grant(a, { ...first, ttlMs });
      await refuse(b, { ...second, ttlMs });
      assert.equal(await a.release(first), "released");
      await grant(b, { ...second, ttlMs });
      await expectHeld(a, first, false);
      await expectHeld(a, second, true);
      await refuse(a, { ...first, ttlMs });
    },
  },
  {
    id: "holder-is-granted-again",
    rule: 6,
    title: "an acquire by the owner that holds the key succeeds, so a request that was sent twice does no harm",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      await grant(a, { ...holder, ttlMs });
      await grant(b, { ...holder, ttlMs });
      await refuse(b, { ...freshOwner(holder.key), ttlMs });
    },
  },
  {
    id: "grants-are-not-counted",
    rule: 6,
    title: "one release frees the key, however often its owner was granted it",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      for (let time = 0; time < 3; time++) await grant(a, { ...holder, ttlMs });
      assert.equal(await a.release(holder), "released");
      await expectHeld(a, holder, false);
      await grant(b, { ...freshOwner(holder.key), ttlMs });
    },
  },
  {
    id: "grant-again-starts-the-ttl-anew",
    rule: 6,
    title: "an acquire by the holder sets the lease's end anew, later or earlier",
    async check({ a, shortTtlMs, longTtlMs, lapse }) {
      const prolonged = freshOwner();
      const shortened = freshOwner();
      await grant(a, { ...prolonged, ttlMs: shortTtlMs });
      await grant(a, { ...prolonged, ttlMs: longTtlMs });
      await grant(a, { ...shortened, ttlMs: longTtlMs });
      await grant(a, { ...shortened, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      await expectHeld(a, prolonged, true);
      await expectHeld(a, shortened, false);
    },
  },
  {
    id: "release-by-a-stranger-is-harmless",
    rule: 7,
    title: "a release by anybody but the holder says not-held and changes nothing",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      assert.equal(await b.release(freshOwner(holder.key)), "not-held");
      await expectHeld(a, holder, true);
      await refuse(b, { ...freshOwner(holder.key), ttlMs });
    },
  },
  {
    id: "second-release-says-not-held",
    rule: 7,
    title: "a second release says not-held, also while somebody else holds the key by then",
    async check({ a, b, longTtlMs: ttlMs }) {
      const first = freshOwner();
      const second = freshOwner(first.key);
      await grant(a, { ...first, ttlMs });
      assert.equal(await a.release(first), "released");
      assert.equal(await a.release(first), "not-held");
      await grant(b, { ...second, ttlMs });
      assert.equal(await a.release(first), "not-held");
      await expectHeld(b, second, true);
    },
  },
  {
    id: "release-of-another-key-is-harmless",
    rule: 7,
    title: "a release under a wrong key says not-held and frees neither key",
    async check({ a, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      assert.equal(await a.release({ ...holder, key: freshKey() }), "not-held");
      await expectHeld(a, holder, true);
    },
  },
  {
    id: "release-leaves-nothing-behind",
    rule: 7,
    title: "after a release the backend keeps nothing of the lock",
    needs: ["contents"],
    async check({ a, backend, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      const before = await backend.contents(holder.key);
      await grant(a, { ...holder, ttlMs });
      assert.equal(await a.release(holder), "released");
      assert.deepEqual(await backend.contents(holder.key), before);
    },
  },
  {
    id: "stores-on-one-backend-see-each-other",
    rule: 8,
    title: "a lease granted through one store is looked up, extended and released through another",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      await expectHeld(b, holder, true);
      assert.equal(await b.extend({ ...holder, ttlMs }), "extended");
      assert.equal(await b.release(holder), "released");
      await expectHeld(a, holder, false);
    },
  },
];
