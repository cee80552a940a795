import { LockKeyConflictError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newKey, newOwner, pause, serverNow, stored } from "./support.ts";

const MARKER = "__write__";
const GRANTED = { outcome: "granted" };
const CONTENDED = { outcome: "contended" };
const LOST = { outcome: "lost" };
const mode = "shared";
/** How late an operation may have been carried out. */
const LEEWAY_MS = 2_000;

/** The states of shared locks: those that our operations make, and those that only symfony/lock or a hand makes. */
describe.skipIf(!hasRedis)("shared locks in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;
  let key: string;
  let now: number;
  const [a, b, c] = [newOwner(), newOwner(), newOwner()];

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

  /** Plants members with scores relative to the server's clock (or as given, when text), and the key's end. */
  async function plant(members: Record<string, number | string>, expiresInMs?: number) {
    for (const [member, score] of Object.entries(members)) {
      await redis.zadd(key, typeof score === "number" ? now + score : score, member);
    }
    if (expiresInMs !== undefined) await redis.pexpireat(key, now + expiresInMs);
  }

  /**
   * Insists on exactly these members. A number is the milliseconds from now that an operation of the test asked for, text
   * is the exact score; the key must end with the highest of the stored scores.
   */
  async function expectStored(expected: Record<string, number | string>) {
    const { members, expiresAt } = await stored(redis, key);
    expect(Object.keys(members).sort()).toEqual(Object.keys(expected).sort());
    for (const [member, score] of Object.entries(expected)) {
      if (typeof score === "string") expect(members[member]).toBe(score);
      else {
        expect(members[member]).toMatch(/^\d{13}$/);
        const inMs = Number(members[member]) - now;
        expect([member, inMs >= score && inMs <= score + LEEWAY_MS, inMs]).toEqual([member, true, inMs]);
      }
    }
    expect(expiresAt).toBe(Math.max(...Object.values(members).map(Number)));
  }
  const scoreOf = async (owner: string) => (await stored(redis, key)).members[owner] as string;
  const read = (owner: string, ttlMs = 10_000) => store.acquire({ key, owner, ttlMs, mode });
  const write = (owner: string, ttlMs = 10_000) => store.acquire({ key, owner, ttlMs });

  describe("the steps of a lock's life", () => {
    it("a reader is one member, without the marker", async () => {
      expect(await read(a)).toEqual(GRANTED);
      await expectStored({ [a]: 10_000 });
    });

    it("a second reader is one more member, and the key lives as long as the longest", async () => {
      await read(a);
      const score = await scoreOf(a);
      expect(await read(b, 30_000)).toEqual(GRANTED);
      await expectStored({ [a]: score, [b]: 30_000 });
    });

    it("a second reader with a shorter TTL leaves the end of the key", async () => {
      await read(a, 30_000);
      const score = await scoreOf(a);
      await read(b, 10_000);
      await expectStored({ [a]: score, [b]: 10_000 });
    });

    it("a reader that acquires again moves its own score, later or earlier", async () => {
      await read(a, 30_000);
      await read(b, 20_000);
      await read(a, 10_000);
      await expectStored({ [a]: 10_000, [b]: 20_000 });
      await read(a, 40_000);
      await expectStored({ [a]: 40_000, [b]: 20_000 });
    });

    it.each(["acquire in mode shared", "demote"])("%s of the writer removes the marker alone", async (by) => {
      await write(a);
      if (by === "demote") expect(await store.demote({ key, owner: a, ttlMs: 20_000 })).toBe("demoted");
      else expect(await read(a, 20_000)).toEqual(GRANTED);
      await expectStored({ [a]: 20_000 });
      expect(await store.demote({ key, owner: a, ttlMs: 5_000 })).toBe("demoted");
      await expectStored({ [a]: 5_000 });
    });

    it.each(["acquire", "promote"])("%s of a reader beside another changes nothing", async (by) => {
      await read(a);
      await read(b, 30_000);
      const before = await stored(redis, key);
      if (by === "promote") expect(await store.promote({ key, owner: a, ttlMs: 99_000 })).toEqual(CONTENDED);
      else expect(await write(a, 99_000)).toEqual(CONTENDED);
      expect(await stored(redis, key)).toEqual(before);
    });

    it("a writer's or a stranger's try beside readers changes nothing, nor does a reader's beside a writer", async () => {
      await read(a);
      await read(b);
      const readers = await stored(redis, key);
      expect(await write(c, 99_000)).toEqual(CONTENDED);
      expect(await store.promote({ key, owner: c, ttlMs: 99_000 })).toEqual(LOST);
      expect(await store.demote({ key, owner: c, ttlMs: 99_000 })).toBe("lost");
      expect(await stored(redis, key)).toEqual(readers);
      key = newKey();
      await write(a);
      const writer = await stored(redis, key);
      expect(await read(b, 99_000)).toEqual(CONTENDED);
      expect(await stored(redis, key)).toEqual(writer);
    });

    it("the end of the key comes back to the reader that stays", async () => {
      await read(a);
      const score = await scoreOf(a);
      await read(b, 30_000);
      expect(await store.release({ key, owner: b })).toBe("released");
      await expectStored({ [a]: score });
    });

    it.each(["acquire", "promote"])("%s of the only reader makes it exactly the writer", async (by) => {
      await read(a);
      if (by === "promote") {
        expect(await store.promote({ key, owner: a, ttlMs: 20_000 })).toEqual({ outcome: "promoted" });
      } else expect(await write(a, 20_000)).toEqual(GRANTED);
      await expectStored({ [a]: 20_000, [MARKER]: 20_000 });
      const { members } = await stored(redis, key);
      expect(members[MARKER]).toBe(members[a]);
      expect(await store.promote({ key, owner: a, ttlMs: 5_000 })).toEqual({ outcome: "promoted" });
      await expectStored({ [a]: 5_000, [MARKER]: 5_000 });
    });

    it("the release after promotion and demotion leaves no key", async () => {
      await read(a);
      await store.promote({ key, owner: a, ttlMs: 10_000 });
      await store.demote({ key, owner: a, ttlMs: 10_000 });
      await read(b);
      await store.release({ key, owner: a });
      await store.promote({ key, owner: b, ttlMs: 10_000 });
      expect(await store.release({ key, owner: b })).toBe("released");
      expect(await redis.exists(key)).toBe(0);
    });

    it("the longest TTL is stored in plain digits, whatever brings it", async () => {
      const ttlMs = 315_360_000_000;
      await read(a, ttlMs);
      await expectStored({ [a]: ttlMs });
      await store.promote({ key, owner: a, ttlMs });
      await expectStored({ [a]: ttlMs, [MARKER]: ttlMs });
      await store.demote({ key, owner: a, ttlMs });
      await expectStored({ [a]: ttlMs });
    });
  });

  describe("a reader whose lease has ended, while a longer one keeps the key", () => {
    it("stays stored until a write prunes it: isHeld and inspect do not", async () => {
      await plant({ [a]: -100, [b]: 20_000 }, 20_000);
      expect(await store.isHeld({ key, owner: a })).toBe(false);
      expect((await store.inspect({ key })).holders).toHaveLength(1);
      expect(Object.keys((await stored(redis, key)).members)).toEqual([a, b]);
      expect(await read(c)).toEqual(GRANTED);
      await expectStored({ [b]: String(now + 20_000), [c]: 10_000 });
    });

    it("is revived by nothing but a new acquire", async () => {
      await plant({ [a]: -100, [b]: 20_000 }, 20_000);
      expect(await store.extend({ key, owner: a, ttlMs: 10_000 })).toBe("lost");
      expect(await store.promote({ key, owner: a, ttlMs: 10_000 })).toEqual(LOST);
      expect(await store.demote({ key, owner: a, ttlMs: 10_000 })).toBe("lost");
      expect(await store.release({ key, owner: a })).toBe("not-held");
      await expectStored({ [b]: String(now + 20_000) });
      expect(await read(a)).toEqual(GRANTED);
    });

    it("does not stand against the promotion of the live one", async () => {
      await plant({ [a]: -100, [b]: 20_000 }, 20_000);
      expect(await store.promote({ key, owner: b, ttlMs: 10_000 })).toEqual({ outcome: "promoted" });
      await expectStored({ [b]: 10_000, [MARKER]: 10_000 });
    });

    it("goes with the release of the live one", async () => {
      await read(a, 50);
      await read(b, 20_000);
      await pause(70);
      expect(await store.release({ key, owner: b })).toBe("released");
      expect(await redis.exists(key)).toBe(0);
    });
  });

  describe("a promotion of a lease that is gone", () => {
    it("says lost and writes nothing, where symfony/lock would acquire anew", async () => {
      expect(await store.promote({ key, owner: a, ttlMs: 10_000 })).toEqual(LOST);
      expect(await redis.exists(key)).toBe(0);
      await write(b);
      const before = await stored(redis, key);
      expect(await store.promote({ key, owner: a, ttlMs: 10_000 })).toEqual(LOST);
      expect(await stored(redis, key)).toEqual(before);
    });
  });

  describe("states that only symfony/lock makes", () => {
    it("a write lock between its save (300 s) and its refresh keeps readers out", async () => {
      await plant({ [b]: 300_000, [MARKER]: 300_000 }, 300_000);
      expect(await read(a)).toEqual(CONTENDED);
      await expectStored({ [b]: String(now + 300_000), [MARKER]: String(now + 300_000) });
    });

    it("that write lock is demoted, promoted and extended by who knows its token", async () => {
      await plant({ [a]: 300_000, [MARKER]: 300_000 }, 300_000);
      expect(await store.promote({ key, owner: a, ttlMs: 10_000 })).toEqual({ outcome: "promoted" });
      await expectStored({ [a]: 10_000, [MARKER]: 10_000 });
      expect(await store.demote({ key, owner: a, ttlMs: 20_000 })).toBe("demoted");
      await expectStored({ [a]: 20_000 });
    });

    it("a reader between its save (300 s) and its refresh lets our readers in beside it", async () => {
      await plant({ [b]: 300_000 }, 300_000);
      expect(await read(a)).toEqual(GRANTED);
      await expectStored({ [a]: 10_000, [b]: String(now + 300_000) });
      expect(await store.promote({ key, owner: a, ttlMs: 10_000 })).toEqual(CONTENDED);
    });

    it("a key without expiry (PERSIST by hand) is armed again by a reader, a promotion and a demotion", async () => {
      for (const change of [
        () => read(b),
        () => store.promote({ key, owner: a, ttlMs: 10_000 }),
        () => store.demote({ key, owner: a, ttlMs: 10_000 }),
      ]) {
        key = newKey();
        await plant({ [a]: 20_000 });
        expect((await stored(redis, key)).expiresAt).toBe(-1);
        await change();
        expect((await stored(redis, key)).expiresAt).toBeGreaterThan(now);
      }
    });

    it("a marker without owner keeps readers out until it ends, and is shown as one exclusive holder", async () => {
      await plant({ [MARKER]: 10_000 }, 10_000);
      expect(await read(a)).toEqual(CONTENDED);
      expect(await store.promote({ key, owner: a, ttlMs: 1_000 })).toEqual(LOST);
      expect(await store.demote({ key, owner: a, ttlMs: 1_000 })).toBe("lost");
      await expectStored({ [MARKER]: String(now + 10_000) });
      expect(await store.inspect({ key })).toEqual({
        mode: "exclusive",
        holders: [{ remainingMs: expect.any(Number) }],
      });
      expect(await store.forceRelease({ key })).toBe("released");
      expect(await read(a)).toEqual(GRANTED);
    });

    it("a marker beside two members is nobody's: readers and promotions are refused, a demotion leaves it", async () => {
      await plant({ [a]: 10_000, [b]: 20_000, [MARKER]: 30_000 }, 30_000);
      const [bScore, markerScore] = [String(now + 20_000), String(now + 30_000)];
      expect(await read(c)).toEqual(CONTENDED);
      expect(await read(a)).toEqual(CONTENDED);
      expect(await store.promote({ key, owner: a, ttlMs: 1_000 })).toEqual(CONTENDED);
      await expectStored({ [a]: String(now + 10_000), [b]: bScore, [MARKER]: markerScore });
      expect(await store.demote({ key, owner: a, ttlMs: 15_000 })).toBe("demoted");
      await expectStored({ [a]: 15_000, [b]: bScore, [MARKER]: markerScore });
      expect((await store.inspect({ key })).holders).toHaveLength(2);
    });

    it("fractional and endless scores are counted as holders, and the key lives on for them", async () => {
      await plant({ [b]: `${now + 30_000}.25` }, 30_000);
      expect(await read(a)).toEqual(GRANTED);
      expect((await stored(redis, key)).expiresAt).toBe(now + 30_001);
      await plant({ [c]: "+inf" });
      expect(await store.demote({ key, owner: a, ttlMs: 5_000 })).toBe("demoted");
      expect((await stored(redis, key)).expiresAt).toBe(-1);
      expect(await store.promote({ key, owner: a, ttlMs: 5_000 })).toEqual(CONTENDED);
      const { mode: shown, holders } = await store.inspect({ key });
      expect([shown, holders.length, holders.at(-1)?.remainingMs]).toEqual(["shared", 3, Number.POSITIVE_INFINITY]);
      await redis.zrem(key, c);
      expect(await store.demote({ key, owner: a, ttlMs: 5_000 })).toBe("demoted");
      expect((await stored(redis, key)).expiresAt).toBe(now + 30_001);
    });
  });

  describe("data of other types", () => {
    it("a string is somebody else's exclusive lock: no reader enters, it is shown, and not released by force", async () => {
      await redis.set(key, "token-of-a-stranger", "PX", 60_000);
      expect(await read(a)).toEqual(CONTENDED);
      expect(await store.promote({ key, owner: a, ttlMs: 1_000 })).toEqual(LOST);
      expect(await store.demote({ key, owner: a, ttlMs: 1_000 })).toBe("lost");
      const { mode: shown, holders } = await store.inspect({ key });
      expect([shown, holders.length]).toEqual(["exclusive", 1]);
      expect(holders[0]?.remainingMs).toBeGreaterThan(50_000);
      expect(JSON.stringify(holders)).not.toContain("stranger");
      expect(await failure(store.forceRelease({ key }))).toBeInstanceOf(LockKeyConflictError);
      expect(await redis.get(key)).toBe("token-of-a-stranger");
      await redis.persist(key);
      expect((await store.inspect({ key })).holders).toEqual([{ remainingMs: Number.POSITIVE_INFINITY }]);
    });

    it.each(["acquire", "promote", "demote", "inspect", "forceRelease"] as const)(
      "a hash is a LockKeyConflictError from %s, and is left as it is",
      async (operation) => {
        await redis.hset(key, "field", "value");
        const error = await failure(store[operation]({ key, owner: a, ttlMs: 1_000, mode }));
        expect(error).toBeInstanceOf(LockKeyConflictError);
        expect(String(error)).toContain("data of the type hash");
        expect(await redis.hgetall(key)).toEqual({ field: "value" });
      },
    );
  });

  describe("forceRelease", () => {
    it("leaves no key, whatever was in it, and says whether anybody held it", async () => {
      await plant({ [a]: 10_000, [b]: 20_000, [c]: -100 }, 20_000);
      expect(await store.forceRelease({ key })).toBe("released");
      expect(await redis.exists(key)).toBe(0);
      await plant({ [a]: -100 });
      expect(await store.forceRelease({ key })).toBe("not-held");
      expect(await redis.exists(key)).toBe(0);
    });
  });
});
