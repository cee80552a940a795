import assert from "node:assert/strict";
import { LockOptionsError } from "../../errors.ts";
import { LockFactory } from "../../lock-factory.ts";
import type { LockStore, OwnedKey } from "../../store.ts";
import { hasFencing, hasInspection, hasSharedLocks } from "../../store-capabilities.ts";
import { hasWaitQueue } from "../../wait-queue.ts";
import type { CaseDefinition, StoreCapability } from "../contract-case.ts";
import { expectHeld, freshKey, freshOwner, grant, refuse } from "./asking.ts";
import { silentLogger } from "./silent-logger.ts";

/** What a store is not, by name or by capability: rules 23 and 24. */
export const capabilityCases: readonly CaseDefinition[] = [
  {
    id: "reserved-markers-are-no-owners",
    rule: 23,
    title: "the names that a store keeps for itself own nobody's lease: they are refused, or strangers like any other",
    async check({ a, longTtlMs: ttlMs }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      for (const owner of ["__write__", ""]) {
        const marker = { key: holder.key, owner };
        if (await refusesOwner(a, marker)) continue;
        await expectHeld(a, marker, false);
        await refuse(a, { ...marker, ttlMs });
        assert.equal(await a.extend({ ...marker, ttlMs }), "lost");
        assert.equal(await a.release(marker), "not-held");
      }
      await expectHeld(a, holder, true);
      await refuse(a, { ...freshOwner(holder.key), ttlMs, mode: "shared" });
    },
  },
  {
    id: "shared-mode-without-shared-locks-is-exclusive",
    rule: 24,
    title: "where there are no shared locks, mode shared is granted exclusively, and said at debug level",
    lacks: "shared",
    async check({ a, b, clock, longTtlMs: ttlMs }) {
      const said: string[] = [];
      const logger = { ...silentLogger, debug: (_fields: unknown, message: string) => void said.push(message) };
      const key = freshKey();
      const lease = await new LockFactory(a, { clock, logger, ttlMs }).createLock(key).tryAcquire({ mode: "shared" });
      assert.equal(lease?.mode, "exclusive");
      assert.ok(
        said.some((message) => message.includes("no shared locks")),
        `said: ${said.join(" ")}`,
      );
      await refuse(b, { ...freshOwner(key), ttlMs, mode: "shared" });
      assert.equal(await lease?.demote(), "demoted");
      await refuse(b, { ...freshOwner(key), ttlMs, mode: "shared" });
      assert.equal(await lease?.promote(), "promoted");
      assert.equal(await lease?.release(), "released");
    },
  },
  {
    id: "capabilities-are-claimed",
    rule: 24,
    title: "the store has the capabilities that its test claims, and no other",
    async check({ a, b, claims }) {
      for (const store of [a, b]) {
        const has: readonly (readonly [StoreCapability, boolean])[] = [
          ["shared", hasSharedLocks(store)],
          ["fencing", hasFencing(store)],
          ["inspection", hasInspection(store)],
          ["waiting", hasWaitQueue(store)],
        ];
        const expected = has.map(([name]) => [name, claims.includes(name)]);
        assert.deepEqual(has, expected, "the capabilities of the store, and the claims of its test");
      }
    },
  },
];

/** Whether the store refuses the owner, and then as the contract wants it. */
async function refusesOwner(store: LockStore, owned: OwnedKey): Promise<boolean> {
  try {
    await store.isHeld(owned);
    return false;
  } catch (error) {
    assert.ok(error instanceof LockOptionsError && error.option === "owner", `an owner refused by ${String(error)}`);
  }
  for (const ask of [
    () => store.acquire({ ...owned, ttlMs: 1_000 }),
    () => store.extend({ ...owned, ttlMs: 1_000 }),
    () => store.release(owned),
  ]) {
    await assert.rejects(ask, LockOptionsError);
  }
  return true;
}
