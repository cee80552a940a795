import { LockFactory, type LockMode } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import fc from "fast-check";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, newKey, newOwner, stored } from "./support.ts";

const TTL_MS = 60_000;
const CROWD = 8;

describe.skipIf(!hasRedis)("operations that leave as one call", () => {
  let server: RedisServer;
  let admin: Redis;

  beforeAll(async () => {
    server = await startRedis();
    admin = await connect(server.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  async function calls(command: string, redis = admin): Promise<number> {
    const stats = await redis.info("commandstats");
    const [, carriedOut, refused] =
      new RegExp(`cmdstat_${command}:calls=(\\d+).*,rejected_calls=(\\d+)`).exec(stats) ?? [];
    return Number(carriedOut ?? 0) + Number(refused ?? 0);
  }

  /** How many EVALSHA and EVAL the server gets while `work` runs. */
  async function scriptCallsDuring(work: () => Promise<unknown>, redis = admin): Promise<readonly [number, number]> {
    const before = [await calls("evalsha", redis), await calls("eval", redis)] as const;
    await work();
    return [(await calls("evalsha", redis)) - before[0], (await calls("eval", redis)) - before[1]];
  }

  const acquireMany = (store: RedisStore, count: number) =>
    Promise.all(
      Array.from({ length: count }, () => store.acquire({ key: newKey(), owner: newOwner(), ttlMs: TTL_MS })),
    );

  /** What a server does not know is sent once more, and so behind what came after it. */
  async function tellScripts(store: RedisStore): Promise<void> {
    const request = { key: newKey(), owner: newOwner(), ttlMs: TTL_MS };
    await store.acquire(request);
    await store.acquire({ ...request, mode: "shared" });
    await store.extend(request);
    await store.isHeld(request);
    await store.release(request);
    await acquireMany(store, 2);
  }

  it("are one command for up to 64 of them", async () => {
    const store = new RedisStore(admin);
    await tellScripts(store);
    expect(await scriptCallsDuring(() => acquireMany(store, 64))).toEqual([1, 0]);
    expect(await scriptCallsDuring(() => acquireMany(store, 65))).toEqual([2, 0]);
  });

  it("are one command as well for locks that would be waited for", async () => {
    const locks = new LockFactory(new RedisStore(admin));
    const run = (mode: LockMode) =>
      Promise.all(
        Array.from({ length: CROWD }, async () => {
          const lease = await locks.createLock(newKey()).acquire({ mode });
          expect(lease.mode).toBe(mode);
          return await lease.release();
        }),
      );
    for (const mode of ["exclusive", "shared"] as const) {
      expect(await run(mode)).toEqual(Array(CROWD).fill("released"));
      expect(await scriptCallsDuring(() => run(mode))).toEqual([2, 0]);
    }
  });

  it("are sent once more, in one call, to a server that does not know their script", async () => {
    const store = new RedisStore(admin);
    await admin.script("FLUSH");
    expect(await scriptCallsDuring(() => acquireMany(store, 16))).toEqual([1, 1]);
    expect(await scriptCallsDuring(() => acquireMany(store, 16))).toEqual([1, 0]);
  });

  const who = fc.integer({ min: 0, max: 2 });
  const step = fc.record({
    do: fc.constantFrom("acquire" as const, "release" as const, "extend" as const, "isHeld" as const),
    key: who,
    owner: who,
    mode: fc.constantFrom("exclusive" as const, "shared" as const),
    fencing: fc.boolean(),
  });

  it.each(["", "prefix:"])("are answered as if each came alone, with the client's keyPrefix %j", async (keyPrefix) => {
    const redis = await connect(server.url, { keyPrefix });
    const store = new RedisStore(redis);
    await tellScripts(store);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 30 }), async (steps) => {
        const owners = [newOwner(), newOwner(), newOwner()];
        const run = (keys: readonly string[], { do: what, key, owner, mode, fencing }: (typeof steps)[number]) => {
          const request = { key: keys[key] ?? "", owner: owners[owner] ?? "", ttlMs: TTL_MS, mode, fencing };
          return store[what](request);
        };
        const [keys, others] = [0, 1].map(() => [newKey(), newKey(), newKey()]) as [string[], string[]];
        const together = await Promise.all(steps.map((one) => run(keys, one)));
        const alone = [];
        for (const one of steps) alone.push(await run(others, one));
        expect(together.map(withoutToken)).toEqual(alone.map(withoutToken));
        for (const [index, key] of keys.entries()) {
          const members = async (of: string) => Object.keys((await stored(admin, keyPrefix + of)).members).sort();
          expect(await members(key)).toEqual(await members(others[index] ?? ""));
        }
      }),
      { numRuns: 40 },
    );
    redis.disconnect();
  });

  it("fail each by itself: what a part may not do is its own error", async () => {
    await admin.acl("SETUSER", "no-expiry", "on", ">password", "allkeys", "+@all", "-pexpireat");
    const redis = await connect(server.url, { username: "no-expiry", password: "password" });
    const store = new RedisStore(redis);
    const held = { key: newKey(), owner: newOwner(), ttlMs: TTL_MS };
    await new RedisStore(admin).acquire(held);
    const answers = await Promise.allSettled([
      store.acquire({ ...held, key: newKey() }),
      store.release(held),
      store.extend({ ...held, key: newKey() }),
    ]);
    expect(answers).toEqual([
      {
        status: "rejected",
        reason: expect.objectContaining({
          code: "LOCK_STORE_FAULT",
          message: expect.stringMatching(/: ERR The user executing the script can't run/),
        }),
      },
      { status: "fulfilled", value: "released" },
      { status: "fulfilled", value: "lost" },
    ]);
    await store.close();
    redis.disconnect();
  });

  it("fail each by itself: a key that the user may not touch is no other's error", async () => {
    await admin.acl("SETUSER", "some-keys", "on", ">password", "~mine:*", "~{mine:*", "+@all");
    const redis = await connect(server.url, { username: "some-keys", password: "password" });
    const store = new RedisStore(redis);
    const acquire = (key: string) => store.acquire({ key, owner: newOwner(), ttlMs: TTL_MS });
    const answers = await Promise.allSettled([acquire("mine:1"), acquire("yours"), acquire("mine:2")]);
    expect(answers).toEqual([
      { status: "fulfilled", value: { outcome: "granted" } },
      {
        status: "rejected",
        reason: expect.objectContaining({ code: "LOCK_STORE_FAULT", message: expect.stringMatching(/NOPERM/) }),
      },
      { status: "fulfilled", value: { outcome: "granted" } },
    ]);
    await store.close();
    redis.disconnect();
  });

  it("leave one by one where the server wants all keys of a call in one slot", async () => {
    await using node = await startRedis({ args: ["--cluster-enabled", "yes"] });
    const redis = await connect(node.url);
    await redis.cluster("ADDSLOTSRANGE", 0, 16_383);
    await expect.poll(() => redis.cluster("INFO"), { timeout: 10_000 }).toMatch(/cluster_state:ok/);
    const store = new RedisStore(redis);
    const granted = Array(CROWD).fill({ outcome: "granted" });
    expect(await acquireMany(store, CROWD)).toEqual(granted);
    const [byDigest] = await scriptCallsDuring(
      async () => expect(await acquireMany(store, CROWD)).toEqual(granted),
      redis,
    );
    expect(byDigest).toBe(CROWD);
    redis.disconnect();
  });
});

/** Tokens differ from key to key; whether there is one does not. */
function withoutToken(answer: unknown): unknown {
  if (typeof answer !== "object" || answer === null || !("fencingToken" in answer)) return answer;
  return { ...answer, fencingToken: typeof answer.fencingToken };
}
