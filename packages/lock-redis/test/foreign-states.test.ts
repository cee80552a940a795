import { LockKeyConflictError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newKey, newOwner, pause, serverNow, stored } from "./support.ts";

const MARKER = "__write__";
const GRANTED = { outcome: "granted" };
const CONTENDED = { outcome: "contended" };

/** States that RedisStore itself never makes: planted by hand as symfony/lock, or somebody's shell, would leave them. */
describe.skipIf(!hasRedis)("RedisStore and what others keep under its keys", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;
  let key: string;
  let now: number;
  const [own, other, third] = [newOwner(), newOwner(), newOwner()];

  /** Plants members with scores relative to the server's clock (or as given, when text), and the key's end. */
  async function plant(members: Record<string, number | string>, expiresInMs?: number) {
    for (const [member, score] of Object.entries(members)) {
      await redis.zadd(key, typeof score === "number" ? now + score : score, member);
    }
    if (expiresInMs !== undefined) await redis.pexpireat(key, now + expiresInMs);
  }
  const acquire = (owner: string, ttlMs = 10_000) => store.acquire({ key, owner, ttlMs });
  const membersNow = async () => Object.keys((await stored(redis, key)).members).sort();
  const sorted = (...members: string[]) => members.sort();
  /** The stored state as milliseconds from the time of planting. */
  async function relative() {
    const { members, expiresAt } = await stored(redis, key);
    const scores = Object.fromEntries(Object.entries(members).map(([member, score]) => [member, Number(score) - now]));
    return { scores, expiresIn: expiresAt < 0 ? expiresAt : expiresAt - now };
  }

  beforeAll(async () => {
    server = await startRedis();
    redis = await connect(server.url);
    store = new RedisStore(redis);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    key = newKey();
    now = await serverNow(redis);
  });

  describe("locks of symfony/lock", () => {
    it("a write lock of PHP excludes us, between its save (300 s) and its refresh as well as after", async () => {
      await plant({ [other]: 300_000, [MARKER]: 300_000 }, 300_000);
      expect(await acquire(own)).toEqual(CONTENDED);
      await plant({ [other]: 10_000, [MARKER]: 10_000 }, 10_000);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await relative()).toEqual({ scores: { [other]: 10_000, [MARKER]: 10_000 }, expiresIn: 10_000 });
    });

    it("a write lock of PHP left at 300 s by a crash before the refresh is ours once its owner token is known", async () => {
      await plant({ [own]: 300_000, [MARKER]: 300_000 }, 300_000);
      expect(await store.isHeld({ key, owner: own })).toBe(true);
      expect(await store.extend({ key, owner: own, ttlMs: 5_000 })).toBe("extended");
      const { scores, expiresIn } = await relative();
      expect(scores[own]).toBeLessThan(6_000);
      expect(scores).toEqual({ [own]: expiresIn, [MARKER]: expiresIn });
      expect(await store.release({ key, owner: own })).toBe("released");
      expect(await redis.exists(key)).toBe(0);
    });

    it("readers of PHP refuse an exclusive lease and are left as they are", async () => {
      await plant({ [other]: 10_000, [third]: 30_000 }, 30_000);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await relative()).toEqual({ scores: { [other]: 10_000, [third]: 30_000 }, expiresIn: 30_000 });
    });

    it("the only reader gets the exclusive lease; with another reader beside it it does not", async () => {
      await plant({ [own]: 10_000, [other]: 10_000 }, 10_000);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await membersNow()).toEqual(sorted(own, other));
      await redis.zrem(key, other);
      expect(await acquire(own)).toEqual(GRANTED);
      expect(await membersNow()).toEqual(sorted(own, MARKER));
    });

    it("a lapsed reader that a longer one keeps stored is pruned by the next acquire, refused or granted", async () => {
      await plant({ [other]: -100, [third]: 20_000 }, 20_000);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await relative()).toEqual({ scores: { [third]: 20_000 }, expiresIn: 20_000 });
      await plant({ [other]: -100 });
      expect(await acquire(third)).toEqual(GRANTED);
      expect(await membersNow()).toEqual(sorted(third, MARKER));
    });

    it("a lapsed reader is not revived by extend, though another keeps the key alive", async () => {
      await plant({ [own]: -100, [other]: 20_000 }, 20_000);
      expect(await store.extend({ key, owner: own, ttlMs: 10_000 })).toBe("lost");
      expect(await store.isHeld({ key, owner: own })).toBe(false);
      expect(await store.release({ key, owner: own })).toBe("not-held");
      expect(await relative()).toEqual({ scores: { [other]: 20_000 }, expiresIn: 20_000 });
    });

    it("release of the longer reader sets the end of the key back to the shorter one's", async () => {
      await plant({ [own]: 30_000, [other]: 10_000 }, 30_000);
      expect(await store.release({ key, owner: own })).toBe("released");
      expect(await relative()).toEqual({ scores: { [other]: 10_000 }, expiresIn: 10_000 });
    });

    it("extend of one reader keeps the others and lets the key live as long as the longest", async () => {
      await plant({ [own]: 1_000, [other]: 30_000 }, 30_000);
      expect(await store.extend({ key, owner: own, ttlMs: 5_000 })).toBe("extended");
      const { scores, expiresIn } = await relative();
      expect(Object.keys(scores).sort()).toEqual(sorted(own, other));
      expect(scores[other]).toBe(30_000);
      expect(expiresIn).toBe(30_000);
    });
  });

  describe("scores and expiries that no script of ours or PHP's writes", () => {
    it("a key without expiry (PERSIST) is armed again by the next extend", async () => {
      await plant({ [own]: 20_000, [MARKER]: 20_000 });
      expect((await relative()).expiresIn).toBe(-1);
      expect(await store.isHeld({ key, owner: own })).toBe(true);
      expect(await store.extend({ key, owner: own, ttlMs: 10_000 })).toBe("extended");
      const { scores, expiresIn } = await relative();
      expect(scores).toEqual({ [own]: expiresIn, [MARKER]: expiresIn });
    });

    it("a lapsed lock in a key without expiry is free", async () => {
      await plant({ [other]: -1, [MARKER]: -1 });
      expect(await acquire(own)).toEqual(GRANTED);
      expect(await membersNow()).toEqual(sorted(own, MARKER));
    });

    it("a fractional score is alive until its end, and the key outlives it by rounding up", async () => {
      await plant({ [other]: `${now + 30_000}.25`, [own]: 10_000 }, 40_000);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await store.isHeld({ key, owner: other })).toBe(true);
      expect(await store.extend({ key, owner: own, ttlMs: 20_000 })).toBe("extended");
      expect((await relative()).expiresIn).toBe(30_001);
      await plant({ [own]: 35_000 });
      expect(await store.release({ key, owner: own })).toBe("released");
      expect(await relative()).toEqual({ scores: { [other]: 30_000.25 }, expiresIn: 30_001 });
    });

    it("our own fractional score becomes an integer at the next acquire and extend", async () => {
      await plant({ [own]: `${now + 30_000}.25`, [MARKER]: `${now + 30_000}.25` }, 40_000);
      expect(await acquire(own)).toEqual(GRANTED);
      await plant({ [own]: `${now + 30_000}.25`, [MARKER]: `${now + 30_000}.25` }, 40_000);
      expect(await store.extend({ key, owner: own, ttlMs: 10_000 })).toBe("extended");
      const { members, expiresAt } = await stored(redis, key);
      expect(members).toEqual({ [own]: String(expiresAt), [MARKER]: String(expiresAt) });
    });

    it.each(["+inf", "1e17", "1e300"])(
      "a holder with the score %s never ends, and our operations still work",
      async (score) => {
        await plant({ [other]: score, [own]: 10_000 }, 40_000);
        expect(await acquire(third)).toEqual(CONTENDED);
        expect(await membersNow()).toEqual(sorted(own, other));
        expect(await store.isHeld({ key, owner: other })).toBe(true);
        expect(await store.extend({ key, owner: own, ttlMs: 20_000 })).toBe("extended");
        expect((await relative()).expiresIn).toBe(-1);
        await redis.pexpireat(key, now + 40_000);
        expect(await store.release({ key, owner: own })).toBe("released");
        expect((await relative()).expiresIn).toBe(-1);
        expect(await acquire(other)).toEqual(GRANTED);
        const { members, expiresAt } = await stored(redis, key);
        expect(members).toEqual({ [other]: String(expiresAt), [MARKER]: String(expiresAt) });
      },
    );

    it("a score of -inf has lapsed", async () => {
      await plant({ [other]: "-inf" });
      expect(await store.isHeld({ key, owner: other })).toBe(false);
      expect(await acquire(own)).toEqual(GRANTED);
    });

    it("a marker without an owner is held by someone else until it lapses", async () => {
      await plant({ [MARKER]: 80 }, 80);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await store.extend({ key, owner: own, ttlMs: 1_000 })).toBe("lost");
      expect(await store.release({ key, owner: own })).toBe("not-held");
      expect((await relative()).scores).toEqual({ [MARKER]: 80 });
      await pause(100);
      expect(await acquire(own)).toEqual(GRANTED);
    });

    it("a marker that outlives its owner by hand keeps everybody out, the former owner included", async () => {
      await plant({ [own]: -100, [MARKER]: 10_000 }, 10_000);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await acquire(other)).toEqual(CONTENDED);
      expect(await store.extend({ key, owner: own, ttlMs: 1_000 })).toBe("lost");
      expect(await relative()).toEqual({ scores: { [MARKER]: 10_000 }, expiresIn: 10_000 });
    });

    it("a marker beside two members is nobody's: acquire is refused, extend and release leave it alone", async () => {
      await plant({ [own]: 10_000, [MARKER]: 20_000, [other]: 30_000 }, 30_000);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await acquire(third)).toEqual(CONTENDED);
      expect(await store.extend({ key, owner: own, ttlMs: 15_000 })).toBe("extended");
      expect((await relative()).scores[MARKER]).toBe(20_000);
      expect(await store.release({ key, owner: own })).toBe("released");
      expect(await relative()).toEqual({ scores: { [MARKER]: 20_000, [other]: 30_000 }, expiresIn: 30_000 });
    });
  });

  describe("data of other types", () => {
    it("a string is somebody else's lock: contended, lost, not held, and left as it is", async () => {
      await redis.set(key, "token-of-a-stranger", "PX", 60_000);
      const expiresAt = await redis.pexpiretime(key);
      expect(await acquire(own)).toEqual(CONTENDED);
      expect(await store.extend({ key, owner: own, ttlMs: 1_000 })).toBe("lost");
      expect(await store.release({ key, owner: own })).toBe("not-held");
      expect(await store.isHeld({ key, owner: own })).toBe(false);
      expect(await store.isHeld({ key, owner: "token-of-a-stranger" })).toBe(false);
      expect(await redis.get(key)).toBe("token-of-a-stranger");
      expect(await redis.pexpiretime(key)).toBe(expiresAt);
    });

    it("a lease of ours keeps a hand-written SET NX out", async () => {
      await acquire(own);
      expect(await redis.set(key, "x", "PX", 1_000, "NX")).toBe(null);
    });

    const plantType: Record<string, () => Promise<unknown>> = {
      hash: () => redis.hset(key, "field", "value"),
      list: () => redis.rpush(key, "item"),
      set: () => redis.sadd(key, own),
      stream: () => redis.xadd(key, "*", "field", "value"),
    };
    describe.each(Object.keys(plantType))("a %s", (type) => {
      it.each(["acquire", "extend", "release", "isHeld"] as const)(
        "is a LockKeyConflictError from %s that names the type, and is left as it is",
        async (operation) => {
          await plantType[type]?.();
          const before = await redis.dump(key);
          const error = await failure(store[operation]({ key, owner: own, ttlMs: 1_000 }));
          expect(error).toBeInstanceOf(LockKeyConflictError);
          expect((error as LockKeyConflictError).message).toContain(`data of the type ${type}`);
          expect((error as LockKeyConflictError).key).toBe(key);
          expect(await redis.dump(key)).toBe(before);
        },
      );
    });
  });
});
