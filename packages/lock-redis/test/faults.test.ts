import { LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis, startTcpProxy, type TcpProxy } from "@ota/testkit";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newKey, newOwner, pause, until } from "./support.ts";

const TTL_MS = 20_000; // Far longer than any test: what is gone earlier was released.

/** Between the store and Redis a proxy loses and holds bytes; `direct` looks at the server past it. */
describe.skipIf(!hasRedis)("RedisStore on a failing network", () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let direct: Redis;
  let redis: Redis;
  let store: RedisStore;
  let key: string;
  let owner: string;

  beforeAll(async () => {
    server = await startRedis();
    direct = await connect(server.url);
  });
  afterAll(async () => {
    direct.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    proxy = await startTcpProxy({ target: server });
    redis = await connect(`redis://${proxy.host}:${proxy.port}`);
    store = new RedisStore(redis, { commandTimeoutMs: 150 });
    key = newKey();
    owner = newOwner();
    // So that every script is known and each operation is one request.
    await store.acquire({ key: "warm-up", owner, ttlMs: TTL_MS });
    await store.extend({ key: "warm-up", owner, ttlMs: TTL_MS });
    await store.isHeld({ key: "warm-up", owner });
    await store.release({ key: "warm-up", owner });
  });
  afterEach(async () => {
    redis.disconnect();
    await proxy.close();
  });

  const isFree = async () => (await direct.exists(key)) === 0;

  it("an acquire whose reply is lost is an error, and what it was granted is released", async () => {
    proxy.cutBeforeReply(1);
    const error = await failure(store.acquire({ key, owner, ttlMs: TTL_MS }));
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ operation: "acquire", store: "redis", key });
    await until(isFree);
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: TTL_MS })).toEqual({ outcome: "granted" });
  });

  it("an extend whose reply is lost is an error, and the owner still holds the lease and may extend it", async () => {
    await store.acquire({ key, owner, ttlMs: TTL_MS });
    proxy.cutBeforeReply(1);
    expect(await failure(store.extend({ key, owner, ttlMs: TTL_MS }))).toMatchObject({ operation: "extend" });
    await until(() => redis.status === "ready");
    expect(await store.isHeld({ key, owner })).toBe(true);
    expect(await store.extend({ key, owner, ttlMs: TTL_MS })).toBe("extended");
  });

  it("a release whose reply is lost is an error, and a second one says not-held", async () => {
    await store.acquire({ key, owner, ttlMs: TTL_MS });
    proxy.cutBeforeReply(1);
    expect(await failure(store.release({ key, owner }))).toMatchObject({ operation: "release" });
    await until(() => redis.status === "ready");
    expect(await store.release({ key, owner })).toBe("not-held");
    expect(await isFree()).toBe(true);
  });

  it("an isHeld whose reply is lost is an error, never false", async () => {
    await store.acquire({ key, owner, ttlMs: TTL_MS });
    proxy.cutBeforeReply(1);
    expect(await failure(store.isHeld({ key, owner }))).toMatchObject({ operation: "isHeld" });
  });

  it("a client that sends lost commands again gets its grant: the same owner is no contention", async () => {
    const resending = new Redis(`redis://${proxy.host}:${proxy.port}`);
    const patient = new RedisStore(resending);
    proxy.cutBeforeReply(1);
    expect(await patient.acquire({ key, owner, ttlMs: TTL_MS })).toEqual({ outcome: "granted" });
    expect(await patient.isHeld({ key, owner })).toBe(true);
    resending.disconnect();
  });

  it("a client that queues while disconnected ends at the deadline, and what it sends later is undone", async () => {
    const queueing = new Redis(`redis://${proxy.host}:${proxy.port}`);
    queueing.on("error", () => {});
    await until(() => queueing.status === "ready");
    proxy.refuse();
    proxy.cut();
    await until(() => queueing.status !== "ready");
    const patient = new RedisStore(queueing, { commandTimeoutMs: 150 });
    const error = await failure(patient.acquire({ key, owner, ttlMs: TTL_MS }));
    expect(String(error)).toMatch(/no answer within 150 ms/);
    const before = await acquireCalls();
    proxy.resume();
    await until(async () => (await acquireCalls()) > before);
    await until(isFree);
    queueing.disconnect();
  });

  it("a request that hangs on the way ends at the deadline, and its late execution is undone", async () => {
    proxy.hold("requests");
    const startedAt = performance.now();
    const error = await failure(store.acquire({ key, owner, ttlMs: TTL_MS }));
    expect(performance.now() - startedAt).toBeLessThan(400);
    expect(String(error)).toMatch(/no answer within 150 ms.*commandTimeoutMs/);
    expect(await isFree()).toBe(true);
    const calls = await acquireCalls();
    proxy.resume();
    await until(async () => (await acquireCalls()) > calls);
    await until(isFree);
  });

  it("a connection that is cut with the request still on the way leaves nothing behind", async () => {
    proxy.hold("requests");
    const acquiring = failure(store.acquire({ key, owner, ttlMs: TTL_MS }));
    await pause(20);
    proxy.cut();
    expect(await acquiring).toBeInstanceOf(LockStoreError);
    proxy.resume();
    await until(async () => redis.status === "ready" && (await isFree()));
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: TTL_MS })).toEqual({ outcome: "granted" });
  });

  it("the undoing goes on until Redis can be reached again", async () => {
    proxy.dropReplies();
    const acquiring = failure(store.acquire({ key, owner, ttlMs: TTL_MS }));
    await until(async () => !(await isFree()));
    proxy.refuse();
    proxy.cut();
    expect(await acquiring).toBeInstanceOf(LockStoreError);
    await pause(400);
    expect(await isFree()).toBe(false);
    proxy.resume();
    await until(isFree);
  });

  it("while an acquire is being undone, the same owner is refused rather than granted and then robbed", async () => {
    proxy.hold("both");
    await failure(store.acquire({ key, owner, ttlMs: TTL_MS }));
    const error = await failure(store.acquire({ key, owner, ttlMs: TTL_MS }));
    expect(String(error)).toMatch(/still being undone\. Use a fresh owner token/);
    proxy.resume();
    await until(async () => (await store.acquire({ key, owner, ttlMs: TTL_MS }).catch(() => undefined)) !== undefined);
    await pause(100);
    expect(await store.isHeld({ key, owner })).toBe(true);
  });

  it("an acquire that was given up is not sent again when the server turns out not to know the script", async () => {
    await direct.script("FLUSH");
    proxy.hold("replies");
    await failure(store.acquire({ key, owner, ttlMs: TTL_MS }));
    expect(await isFree()).toBe(true);
    const evals = await calls("eval");
    await direct.script("FLUSH");
    proxy.resume();
    await until(async () => (await calls("eval")) > evals); // That of the release.
    await pause(50);
    expect(await calls("eval")).toBe(evals + 1);
    expect(await isFree()).toBe(true);
  });

  it("an answer that waits in the socket while the event loop is blocked is taken, though the deadline has passed", async () => {
    const unproxied = new RedisStore(direct, { commandTimeoutMs: 150 });
    const acquiring = unproxied.acquire({ key, owner, ttlMs: TTL_MS });
    await new Promise(setImmediate);
    const blockedUntil = performance.now() + 300;
    while (performance.now() < blockedUntil);
    expect(await acquiring).toEqual({ outcome: "granted" });
  });

  it("a grant that comes after the release of a client that reorders is released again", async () => {
    let holdBack: Promise<void> | undefined = pause(300);
    const reordering = new RedisStore(
      {
        evalsha: async (...args) => {
          const wait = holdBack;
          holdBack = undefined;
          await wait;
          return redis.evalsha(...args);
        },
        eval: (...args) => redis.eval(...args),
      },
      { commandTimeoutMs: 50 },
    );
    const before = await acquireCalls();
    await failure(reordering.acquire({ key, owner, ttlMs: TTL_MS }));
    await until(async () => (await acquireCalls()) > before);
    await until(isFree);
  });

  it("when the client of a failed acquire has been closed and replaced, the undoing goes over the current one", async () => {
    let current = redis;
    const swapping = new RedisStore(() => current);
    proxy.dropReplies();
    const acquiring = failure(swapping.acquire({ key, owner, ttlMs: TTL_MS }));
    await until(async () => !(await isFree()));
    current = direct;
    redis.disconnect();
    expect(await acquiring).toBeInstanceOf(LockStoreError);
    await until(isFree);
  });

  it("close releases once more what is left, ends the background work, and refuses to acquire", async () => {
    proxy.dropReplies();
    await failure(store.acquire({ key, owner, ttlMs: TTL_MS }));
    proxy.refuse();
    proxy.cut();
    await pause(300);
    const startedAt = performance.now();
    await store.close();
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(String(await failure(store.acquire({ key, owner: newOwner(), ttlMs: TTL_MS })))).toMatch(/was closed/);
    proxy.resume();
    await until(() => redis.status === "ready");
    await direct.zadd(key, Date.now() + TTL_MS, owner, Date.now() + TTL_MS, "__write__");
    await pause(300);
    expect(await isFree()).toBe(false); // Nobody is left who would release it.
    expect(await store.isHeld({ key, owner })).toBe(true);
    expect(await store.release({ key, owner })).toBe("released");
  });

  /** How many times the server has run a command. */
  async function calls(command: string): Promise<number> {
    const stats = await direct.info("commandstats");
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  }
  /** ZADD is only ever called by an acquire or extend that succeeds. */
  const acquireCalls = () => calls("zadd");
});

describe.skipIf(!hasRedis)("RedisStore on a failing server", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;

  beforeEach(async () => {
    server = await startRedis();
    redis = await connect(server.url);
    store = new RedisStore(redis, { commandTimeoutMs: 150 });
  });
  afterEach(async () => {
    redis.disconnect();
    await server.stop();
  });

  it("SCRIPT FLUSH between any two calls changes nothing", async () => {
    const key = newKey();
    const owner = newOwner();
    const flushed = async <T>(operation: () => Promise<T>) => {
      await redis.script("FLUSH");
      return operation();
    };
    expect(await flushed(() => store.acquire({ key, owner, ttlMs: 5_000 }))).toEqual({ outcome: "granted" });
    expect(await flushed(() => store.acquire({ key, owner: newOwner(), ttlMs: 5_000 }))).toEqual({
      outcome: "contended",
    });
    expect(await flushed(() => store.isHeld({ key, owner }))).toBe(true);
    expect(await flushed(() => store.extend({ key, owner, ttlMs: 5_000 }))).toBe("extended");
    expect(await flushed(() => store.release({ key, owner }))).toBe("released");
    expect(await flushed(() => store.release({ key, owner }))).toBe("not-held");
  });

  it("each operation is one EVALSHA once the server knows the scripts, and SCRIPT LOAD is never used", async () => {
    const key = newKey();
    const owner = newOwner();
    for (let round = 0; round < 3; round += 1) {
      await store.acquire({ key, owner, ttlMs: 5_000 });
      await store.extend({ key, owner, ttlMs: 5_000 });
      await store.isHeld({ key, owner });
      await store.release({ key, owner });
    }
    const stats = await redis.info("commandstats");
    expect(stats).toMatch(/cmdstat_evalsha:calls=12,/);
    expect(stats).toMatch(/cmdstat_eval:calls=4,/);
    expect(stats).not.toMatch(/cmdstat_script/);
  });

  it("while the server hangs every operation ends at its deadline, and nothing is left once it goes on", async () => {
    const held = { key: newKey(), owner: newOwner() };
    await store.acquire({ ...held, ttlMs: 20_000 });
    const keys = Array.from({ length: 50 }, newKey);
    server.pause();
    const startedAt = performance.now();
    const results = await Promise.allSettled([
      ...keys.map((key) => store.acquire({ key, owner: newOwner(), ttlMs: 20_000 })),
      store.extend({ ...held, ttlMs: 20_000 }),
      store.isHeld(held),
    ]);
    expect(performance.now() - startedAt).toBeLessThan(500);
    for (const result of results) {
      expect(result.status === "rejected" && result.reason).toBeInstanceOf(LockStoreError);
    }
    server.resume();
    await until(async () => (await redis.exists(...keys)) === 0);
    expect(await redis.exists(...keys)).toBe(0);
    expect(await store.isHeld(held)).toBe(true);
  });

  it("while the server is down every operation is an error at once, and works again when it is back", async () => {
    const key = newKey();
    const owner = newOwner();
    await store.acquire({ key, owner, ttlMs: 20_000 });
    await server.kill();
    await until(() => redis.status !== "ready");
    for (const operation of ["acquire", "extend", "release", "isHeld"] as const) {
      const error = await failure(store[operation]({ key, owner: newOwner(), ttlMs: 20_000 }));
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ operation });
    }
    await server.restart();
    await until(() => redis.status === "ready");
    expect(await store.isHeld({ key, owner })).toBe(false); // Kept in memory only: lost with the server.
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: 20_000 })).toEqual({ outcome: "granted" });
  });

  it("the client's own timeout is a LockStoreError too, and the late grant is undone", async () => {
    const impatient = await connect(server.url, { commandTimeout: 500 });
    const eager = new RedisStore(impatient);
    const key = newKey();
    await eager.acquire({ key: "warm-up", owner: newOwner(), ttlMs: 20_000 });
    const before = await redis.info("commandstats");
    server.pause();
    const error = await failure(eager.acquire({ key, owner: newOwner(), ttlMs: 20_000 }));
    expect(error).toBeInstanceOf(LockStoreError);
    expect(String(error)).toMatch(/Command timed out/);
    server.resume();
    expect(before).toMatch(/cmdstat_zadd:calls=1,/);
    await until(async () => /cmdstat_zadd:calls=2,/.test(await redis.info("commandstats")));
    await until(async () => (await redis.exists(key)) === 0);
    impatient.disconnect();
  });
});
