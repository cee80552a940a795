import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { hashedPart, slotOf } from "../src/slot.ts";
import { connect, newKey, newOwner } from "./support.ts";

describe.skipIf(!hasRedis)("operations of one tick", () => {
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

  function acquireMany(store: RedisStore, count: number) {
    return Array.from({ length: count }, () => store.acquire({ key: newKey(), owner: newOwner(), ttlMs: 10_000 }));
  }

  /** How many writes the client's socket is given while `work` runs. */
  async function writesDuring(client: Redis, work: () => Promise<unknown>): Promise<number> {
    const socket = client.stream;
    const { write } = socket;
    let writes = 0;
    socket.write = function counted(this: unknown, ...args: unknown[]) {
      writes++;
      return Reflect.apply(write, this, args);
    };
    try {
      await work();
    } finally {
      socket.write = write;
    }
    return writes;
  }

  it("leave in one write for up to 64 of them", async () => {
    const store = new RedisStore(redis);
    // So that the server knows the scripts.
    await Promise.all(acquireMany(store, 2));
    await Promise.all(acquireMany(store, 1));
    expect(await writesDuring(redis, () => Promise.all(acquireMany(store, 64)))).toBe(1);
    expect(await writesDuring(redis, () => Promise.all(acquireMany(store, 1)))).toBe(1);
    expect(await writesDuring(redis, () => Promise.all(acquireMany(store, 65)))).toBe(2);
  });

  it("leave in one write as well when they follow the answers of one read, however late in the tick", async () => {
    const store = new RedisStore(redis);
    const takeAndGiveBack = async (index: number) => {
      const owned = { key: newKey(), owner: newOwner() };
      await store.acquire({ ...owned, ttlMs: 10_000 });
      for (let steps = 0; steps < index; steps++) await undefined;
      return await store.release(owned);
    };
    const all = () => Promise.all(Array.from({ length: 16 }, (_, index) => takeAndGiveBack(index)));
    await all(); // So that the server knows the scripts.
    expect(await writesDuring(redis, all)).toBe(2);
  });

  it("are each answered for themselves: contention and foreign data stay with their key", async () => {
    const store = new RedisStore(redis);
    const [free, held, foreign] = [newKey(), newKey(), newKey()];
    await store.acquire({ key: held, owner: newOwner(), ttlMs: 10_000 });
    await redis.hset(foreign, "field", "value");
    const answers = await Promise.allSettled(
      [free, held, foreign].map((key) => store.acquire({ key, owner: newOwner(), ttlMs: 10_000 })),
    );
    expect(
      answers.map((answer) => (answer.status === "fulfilled" ? answer.value.outcome : answer.reason.code)),
    ).toEqual(["granted", "contended", "LOCK_KEY_CONFLICT"]);
  });

  it("survive a flushed script cache", async () => {
    const store = new RedisStore(redis);
    await redis.script("FLUSH");
    const answers = await Promise.all(acquireMany(store, 16));
    expect(answers.every(({ outcome }) => outcome === "granted")).toBe(true);
  });

  it("keep their order: a release behind an acquire of the same owner frees the key", async () => {
    const store = new RedisStore(redis);
    const owned = { key: newKey(), owner: newOwner() };
    const answers = await Promise.all([store.acquire({ ...owned, ttlMs: 10_000 }), store.release(owned)]);
    expect(answers).toEqual([{ outcome: "granted" }, "released"]);
    expect(await redis.exists(owned.key)).toBe(0);
  });

  it("each fail when the connection is gone", async () => {
    const client = new Redis(server.url, { enableOfflineQueue: false, retryStrategy: null, lazyConnect: true });
    client.on("error", () => {});
    await client.connect();
    const store = new RedisStore(client);
    client.disconnect();
    const answers = await Promise.allSettled(acquireMany(store, 3));
    expect(answers.map((answer) => answer.status === "rejected" && answer.reason.code)).toEqual(
      Array(3).fill("LOCK_STORE_FAULT"),
    );
    await store.close();
  });
});

describe.skipIf(!hasRedis)("the slot of a key", () => {
  it("is the one that the server computes", async () => {
    await using server = await startRedis({ args: ["--cluster-enabled", "yes"] });
    const redis = await connect(server.url);
    const keys = [
      "",
      "a",
      "user:1",
      "{user}:1",
      "a{b}c",
      "a{}c",
      "{",
      "}",
      "a{b",
      "a}b{c}d",
      "{a}{b}",
      "ключ",
      "🔒{ü}",
    ];
    const slots = await Promise.all(keys.map((key) => redis.cluster("KEYSLOT", key)));
    redis.disconnect();
    expect(keys.map(slotOf)).toEqual(slots);
  });

  it("is decided by the first hash tag that is not empty", () => {
    expect(["{user}:1", "a{b}c", "a{}c", "plain"].map(hashedPart)).toEqual(["user", "b", "a{}c", "plain"]);
  });
});
