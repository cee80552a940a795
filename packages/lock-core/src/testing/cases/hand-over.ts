import assert from "node:assert/strict";
import { LockFactory } from "../../lock-factory.ts";
import type { CaseDefinition } from "../contract-case.ts";
import { expectHeld, freshKey, freshOwner, grant } from "./asking.ts";
import { silentLogger as logger } from "./silent-logger.ts";

/** Leases on their way to another process: rule 36. */
export const handOverCases: readonly CaseDefinition[] = [
  {
    id: "lease-is-handed-over",
    rule: 36,
    title:
      "a lease given away as JSON is extended and released by who restores it; one of this process is not given away",
    async check({ a, b, clock, longTtlMs: ttlMs }) {
      const [giver, taker] = [
        new LockFactory(a, { clock, logger, ttlMs }),
        new LockFactory(b, { clock, logger, ttlMs }),
      ];
      const key = freshKey();
      const given = await giver.createLock(key).tryAcquire();
      assert.ok(given, "acquire of a free key");
      if (a.reach === "process") {
        assert.throws(() => JSON.stringify(given), { code: "LOCK_INVALID_OPTION" });
        return;
      }
      const taken = await taker.restore(JSON.stringify(given));
      assert.deepEqual([taken?.key, taken?.mode, taken?.status], [key, "exclusive", "held"]);
      assert.equal(await taken?.extend(), "extended");
      assert.equal(await taken?.release(), "released");
      assert.equal(await given.isHeld(), false);
      await grant(a, { ...freshOwner(key), ttlMs });
    },
  },
  {
    id: "lapsed-lease-is-not-restored",
    rule: 36,
    title: "a lease that lapsed on its way is not restored, and its key stays free",
    async check({ a, b, clock, shortTtlMs, longTtlMs, lapse }) {
      if (a.reach === "process") return;
      const lost = freshOwner();
      await grant(a, { ...lost, ttlMs: shortTtlMs });
      await lapse(shortTtlMs);
      const json = JSON.stringify({ version: 1, ...lost, mode: "exclusive", deadlineMs: Date.now() });
      const taker = new LockFactory(b, { clock, logger, ttlMs: longTtlMs });
      assert.equal(await taker.restore(json), undefined);
      await expectHeld(b, lost, false);
      await grant(a, { ...freshOwner(lost.key), ttlMs: longTtlMs });
    },
  },
];
