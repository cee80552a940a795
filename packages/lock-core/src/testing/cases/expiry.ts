import assert from "node:assert/strict";
import { MAX_TTL_MS } from "../../store.ts";
import type { CaseDefinition } from "../contract-case.ts";
import { expectHeld, freshOwner, grant, refuse } from "./asking.ts";
import { withWallClockOff } from "./wall-clock.ts";

const HOUR_MS = 3_600_000;

/** How leases end by themselves: rules 12 to 16. */
export const expiryCases: readonly CaseDefinition[] = [
  {
    id: "lapsed-lease-is-free",
    rule: 12,
    title: "a lapsed lease is free without a release",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const dead = freshOwner();
      await grant(a, { ...dead, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      await expectHeld(a, dead, false);
      await grant(b, { ...freshOwner(dead.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "lapsed-lease-is-not-revived",
    rule: 12,
    title: "an extend of a lapsed lease says lost, and the key stays free",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const late = freshOwner();
      await grant(a, { ...late, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      assert.equal(await a.extend({ ...late, ttlMs: longTtlMs }), "lost");
      await expectHeld(a, late, false);
      await grant(b, { ...freshOwner(late.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "lapsed-lease-is-not-released",
    rule: 12,
    title: "a release of a lapsed lease says not-held",
    async check({ a, shortTtlMs, lapse }) {
      const late = freshOwner();
      await grant(a, { ...late, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      assert.equal(await a.release(late), "not-held");
    },
  },
  {
    id: "former-owner-cannot-touch-the-new-holder",
    rule: 12,
    title: "neither extend nor release of a former owner touches the lease of the new one",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const former = freshOwner();
      const holder = freshOwner(former.key);
      await grant(a, { ...former, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      await grant(b, { ...holder, ttlMs: longTtlMs });
      assert.equal(await a.extend({ ...former, ttlMs: shortTtlMs }), "lost");
      assert.equal(await a.release(former), "not-held");
      await expectHeld(a, former, false);
      await lapse(shortTtlMs);
      await expectHeld(b, holder, true);
      await refuse(a, { ...former, ttlMs: longTtlMs });
    },
  },
  {
    id: "extend-prolongs",
    rule: 13,
    title: "an extended lease outlives its first end",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs: shortTtlMs });
      assert.equal(await a.extend({ ...holder, ttlMs: longTtlMs }), "extended");
      await lapse(shortTtlMs);
      await expectHeld(a, holder, true);
      await refuse(b, { ...freshOwner(holder.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "extend-may-shorten",
    rule: 13,
    title: "an extend to less than what is left ends the lease earlier",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs: longTtlMs });
      assert.equal(await a.extend({ ...holder, ttlMs: shortTtlMs }), "extended");
      await lapse(shortTtlMs);
      await expectHeld(a, holder, false);
      await grant(b, { ...freshOwner(holder.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "extend-never-adds",
    rule: 13,
    title: "an extend counts from now and adds nothing to what is left",
    async check({ a, shortTtlMs, lapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs: shortTtlMs });
      for (let time = 0; time < 3; time++) {
        assert.equal(await a.extend({ ...holder, ttlMs: shortTtlMs }), "extended");
      }
      await lapse(shortTtlMs);
      await expectHeld(a, holder, false);
    },
  },
  {
    id: "extend-by-a-stranger-says-lost",
    rule: 13,
    title: "an extend by anybody but the holder says lost, and neither prolongs nor shortens the holder's lease",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const lapses = freshOwner();
      const keeps = freshOwner();
      await grant(a, { ...lapses, ttlMs: shortTtlMs });
      await grant(a, { ...keeps, ttlMs: longTtlMs });
      assert.equal(await b.extend({ ...freshOwner(lapses.key), ttlMs: longTtlMs }), "lost");
      assert.equal(await b.extend({ ...freshOwner(keeps.key), ttlMs: shortTtlMs }), "lost");
      await lapse(shortTtlMs);
      await expectHeld(a, lapses, false);
      await expectHeld(a, keeps, true);
    },
  },
  {
    id: "extend-after-release-says-lost",
    rule: 13,
    title: "an extend after the release says lost and leaves the key free",
    async check({ a, b, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      assert.equal(await a.release(holder), "released");
      assert.equal(await a.extend({ ...holder, ttlMs }), "lost");
      await grant(b, { ...freshOwner(holder.key), ttlMs });
    },
  },
  {
    id: "lease-lives-for-its-whole-ttl",
    rule: 14,
    title: "the store grants no less time than was asked for, so the holder's own clock is the first to stop",
    async check({ a, b, clock, shortTtlMs, elapse }) {
      // Where the machine stalls past the TTL nothing can be told: a longer lease is tried then.
      for (let ttlMs = shortTtlMs; ttlMs < shortTtlMs * 100; ttlMs *= 2) {
        const holder = freshOwner();
        const askedAt = clock.now();
        await grant(a, { ...holder, ttlMs });
        await elapse(ttlMs * 0.8);
        const held = await a.isHeld(holder);
        const { outcome } = await b.acquire({ ...freshOwner(holder.key), ttlMs });
        if (clock.now() - askedAt >= ttlMs) continue;
        assert.ok(held, `isHeld after 0.8 of a TTL of ${ttlMs} ms`);
        assert.equal(outcome, "contended", `acquire by another after 0.8 of a TTL of ${ttlMs} ms`);
        return;
      }
      assert.fail("the machine was too busy to look at a lease within its TTL: set a longer shortTtlMs");
    },
  },
  {
    id: "shortest-ttl",
    rule: 15,
    title: "a TTL of one millisecond is granted and lapses",
    async check({ a, b, longTtlMs, lapse }) {
      const brief = freshOwner();
      await grant(a, { ...brief, ttlMs: 1 });
      await lapse(1);
      await expectHeld(a, brief, false);
      await grant(b, { ...freshOwner(brief.key), ttlMs: longTtlMs });
    },
  },
  {
    id: "long-ttls",
    rule: 15,
    title: "long TTLs, up to ten years, are granted, last, and can be extended to",
    async check({ a, b, longTtlMs, elapse }) {
      // Two that 32 bits cannot hold and would make short, and the longest.
      for (const ttlMs of [2 ** 31, 2 ** 32 + 1, MAX_TTL_MS]) {
        const holder = freshOwner();
        await grant(a, { ...holder, ttlMs });
        await elapse(30);
        await expectHeld(a, holder, true);
        await refuse(b, { ...freshOwner(holder.key), ttlMs: longTtlMs });
        assert.equal(await a.extend({ ...holder, ttlMs }), "extended");
        await elapse(30);
        await expectHeld(a, holder, true);
        assert.equal(await a.release(holder), "released");
      }
    },
  },
  {
    id: "wall-clock-of-the-client-changes-nothing",
    rule: 16,
    title: "a client whose wall clock is an hour off neither loses nor outlives a lease, its own or another's",
    async check({ a, b, shortTtlMs, longTtlMs, lapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs: longTtlMs });
      const slow = freshOwner();
      const fast = freshOwner();
      await withWallClockOff(-HOUR_MS, () => grant(a, { ...slow, ttlMs: longTtlMs }));
      await withWallClockOff(HOUR_MS, async () => {
        await expectHeld(a, holder, true);
        await refuse(b, { ...freshOwner(holder.key), ttlMs: longTtlMs });
        assert.equal(await a.extend({ ...holder, ttlMs: longTtlMs }), "extended");
        await grant(a, { ...fast, ttlMs: shortTtlMs });
      });
      await refuse(b, { ...freshOwner(slow.key), ttlMs: longTtlMs });
      await lapse(shortTtlMs);
      await expectHeld(a, fast, false);
      await grant(b, { ...freshOwner(fast.key), ttlMs: longTtlMs });
      await expectHeld(a, holder, true);
    },
  },
];
