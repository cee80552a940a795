import { type LockMode, MemoryStore } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import fc from "fast-check";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, newKey, newOwner, stored } from "./support.ts";

const MARKER = "__write__";
const ttlMs = fc.integer({ min: 60_000, max: 90_000 }); // Nothing lapses while the test runs.
const who = fc.integer({ min: 0, max: 2 });
const owned = { key: who, owner: who };

const step = fc.oneof(
  fc.record({
    do: fc.constant("acquire" as const),
    ...owned,
    ttlMs,
    mode: fc.constantFrom<LockMode>("exclusive", "shared"),
  }),
  fc.record({ do: fc.constant("promote" as const), ...owned, ttlMs }),
  fc.record({ do: fc.constantFrom("extend" as const, "demote" as const), ...owned, ttlMs }),
  fc.record({ do: fc.constantFrom("release" as const, "isHeld" as const), ...owned }),
  fc.record({ do: fc.constant("forceRelease" as const), key: who }),
);

describe.skipIf(!hasRedis)("RedisStore under any sequence of operations", () => {
  let server: RedisServer;
  let redis: Redis;

  beforeAll(async () => {
    server = await startRedis();
    redis = await connect(server.url);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  it("answers as MemoryStore does, keeps only states that symfony/lock knows, and lets tokens grow", async () => {
    const store = new RedisStore(redis);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const reference = new MemoryStore();
        const keys = [newKey(), newKey(), newKey()];
        const owners = [newOwner(), newOwner(), newOwner()];
        const [largest, largestInReference] = [new Map<string, bigint>(), new Map<string, bigint>()];
        for (const { do: operation, ...numbers } of steps) {
          const key = keys[numbers.key] as string;
          const owner = owners["owner" in numbers ? numbers.owner : 0] as string;
          // An owner asks for tokens always or never.
          const fencing = "owner" in numbers && numbers.owner < 2;
          const request = { ttlMs: 60_000, ...numbers, key, owner, fencing };
          const [answer, expected] = [await store[operation](request), await reference[operation](request)];
          expect(withoutToken(answer)).toEqual(withoutToken(expected));

          const { mode, holders } = await store.inspect({ key });
          const inReference = await reference.inspect({ key });
          expect([mode, holders.length]).toEqual([inReference.mode, inReference.holders.length]);
          expectKnownState(mode, await stored(redis, key));

          const [isNew, isNewInReference] = [
            isLarger(answer, largest, key),
            isLarger(expected, largestInReference, key),
          ];
          expect(isNew === undefined).toBe(isNewInReference === undefined);
          if (mode === "exclusive") expect(isNew).toBe(isNewInReference);
        }
        await redis.del(...keys);
      }),
      { numRuns: 100 },
    );
  });
});

function withoutToken(answer: unknown): unknown {
  return typeof answer === "object" ? { ...answer, fencingToken: undefined } : answer;
}

/** Whether the answer has a token above all that the key has had, of which it becomes the largest; it is never below. */
function isLarger(answer: unknown, largest: Map<string, bigint>, key: string): boolean | undefined {
  const { fencingToken } = Object(answer) as { readonly fencingToken?: bigint };
  if (fencingToken === undefined) return undefined;
  const before = largest.get(key) ?? 0n;
  expect(fencingToken).toBeGreaterThanOrEqual(before);
  largest.set(key, fencingToken);
  return fencingToken > before;
}

function expectKnownState(mode: string, { members, expiresAt }: Awaited<ReturnType<typeof stored>>): void {
  if (mode === "free") {
    expect([members, expiresAt]).toEqual([{}, -2]);
    return;
  }
  const { [MARKER]: marker, ...holders } = members;
  const scores = Object.values(holders);
  expect(marker === undefined).toBe(mode === "shared");
  if (marker !== undefined) expect(scores).toEqual([marker]);
  for (const score of scores) expect(score).toMatch(/^\d{13}$/);
  expect(expiresAt).toBe(Math.max(...scores.map(Number)));
}
