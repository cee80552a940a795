import { LockFactory, LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { mayRefuseTime } from "../src/client-clock.ts";
import { RedisStore, type RedisStoreOptions } from "../src/index.ts";
import { hasPhpLock, PhpPeer } from "./php-peer.ts";
import { connect, failure, newKey, newOwner, stored, until } from "./support.ts";

const TTL_MS = 10_000;

describe.skipIf(!hasRedis).each([
  ["does not know TIME", ["--rename-command", "TIME", ""]],
  // MONITOR is a command that scripts may not use: what is called TIME now answers as on ElastiCache serverless.
  ["does not allow it in scripts", ["--rename-command", "TIME", "TIME-2", "--rename-command", "MONITOR", "TIME"]],
])("RedisStore on a server that %s", (_how, args) => {
  let server: RedisServer;
  let admin: Redis;
  const clients: Redis[] = [];

  beforeAll(async () => {
    server = await startRedis({ args });
    admin = await connect(server.url);
  });
  afterEach(() => {
    vi.useRealTimers();
    for (const client of clients.splice(0)) client.disconnect();
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  async function newStore(options: RedisStoreOptions = {}): Promise<RedisStore> {
    const client = await connect(server.url);
    clients.push(client);
    return new RedisStore(client, options);
  }
  const failedCalls = async () =>
    Number(/cmdstat_evalsha:.*failed_calls=(\d+)/.exec(await admin.info("commandstats"))?.[1] ?? 0);

  it("every operation works, exclusive and shared and fenced, as the first of its store as well", async () => {
    const key = newKey();
    const [owner, reader] = [newOwner(), newOwner()];
    const claim = { key, owner, ttlMs: TTL_MS, fencing: true };
    const granted = await (await newStore()).acquire(claim);
    expect(granted).toMatchObject({ outcome: "granted" });
    expect(await (await newStore()).acquire({ ...claim, owner: newOwner() })).toEqual({ outcome: "contended" });
    expect(await (await newStore()).isHeld(claim)).toBe(true);
    expect(await (await newStore()).extend(claim)).toBe("extended");
    expect(await (await newStore()).demote(claim)).toBe("demoted");
    const read = { ...claim, owner: reader, mode: "shared" } as const;
    expect(await (await newStore()).acquire(read)).toEqual(granted);
    expect(await (await newStore()).promote(claim)).toEqual({ outcome: "contended" });
    const { mode, holders } = await (await newStore()).inspect(claim);
    expect([mode, holders.length]).toEqual(["shared", 2]);
    expect(await (await newStore()).release(read)).toBe("released");
    const promoted = (await (await newStore()).promote(claim)) as { fencingToken: bigint };
    expect(promoted.fencingToken).toBeGreaterThan((granted as { fencingToken: bigint }).fencingToken);
    expect(await (await newStore()).forceRelease(claim)).toBe("released");
    expect(await (await newStore()).isHeld(claim)).toBe(false);
  });

  it("operations of one tick work, also those by which it is found out", async () => {
    for (const store of [await newStore(), await newStore({ peers: "node-only" })]) {
      const leases = Array.from({ length: 50 }, () => ({ key: newKey(), owner: newOwner(), ttlMs: TTL_MS }));
      for (const [operation, outcome] of [
        ["acquire", { outcome: "granted" }],
        ["extend", "extended"],
        ["release", "released"],
      ] as const) {
        const answers = await Promise.all(leases.map((lease) => store[operation](lease)));
        expect(answers).toEqual(leases.map(() => outcome));
      }
    }
  });

  it.each(["any", "node-only"] as const)("waiters are woken, with peers: %s", async (peers) => {
    const key = newKey();
    const options = { ttlMs: TTL_MS, retryDelayMs: 20_000, waitTimeoutMs: 25_000, fencing: true };
    const lockOf = async () => new LockFactory(await newStore({ peers }), options).createLock(key);
    const [one, two] = [await lockOf(), await lockOf()];
    const lease = await one.acquire();
    const waits = [one, one, two].map((lock) => lock.acquire().then((turn) => turn.release()));
    await until(async () => (await admin.zrange(`{${key}}:queue`, 0, "-1")).length === 2);
    await until(async () => (await admin.zrange(`{${key}}:queue`, 0, "-1")).every((name) => name.startsWith("+")));
    const startedAt = performance.now();
    await lease.release();
    expect(await Promise.all(waits)).toEqual(["released", "released", "released"]);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it("leases end by this process's clock, in their scores as in what is pruned", async () => {
    const store = await newStore();
    const key = newKey();
    const startMs = Date.now() + 3_600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: startMs });
    const first = newOwner();
    await store.acquire({ key, owner: first, ttlMs: TTL_MS });
    const end = startMs + 1 + TTL_MS; // Rounded up: the clock tells whole milliseconds.
    expect(await stored(admin, key)).toEqual({
      members: { [first]: String(end), __write__: String(end) },
      expiresAt: end,
    });
    const second = { key, owner: newOwner(), ttlMs: TTL_MS };
    vi.setSystemTime(end - 1);
    expect(await store.acquire(second)).toEqual({ outcome: "contended" });
    vi.setSystemTime(end);
    expect(await store.acquire(second)).toEqual({ outcome: "granted" });
    expect(await store.isHeld({ key, owner: first })).toBe(false);
  });

  it("the server is asked once in a minute, and a process warning tells of it once for each client", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error & { code?: string }) => {
      if (warning.code === "LOCK_CLIENT_CLOCK") warnings.push(warning);
    };
    process.on("warning", onWarning);
    const store = await newStore();
    // The clock goes on, a minute later: what is measured by it meanwhile stays true.
    const now = performance.now.bind(performance);
    let laterMs = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + laterMs);
    const lease = { key: newKey(), owner: newOwner(), ttlMs: TTL_MS };
    await store.acquire(lease);
    await store.isHeld(lease); // The server has seen both scripts now.
    const asked = await failedCalls();
    for (let round = 0; round < 5; round++) await store.acquire(lease);
    expect(await failedCalls()).toBe(asked);
    laterMs = 61_000;
    for (let round = 0; round < 5; round++) await store.acquire(lease);
    expect(await failedCalls()).toBe(asked + 1);
    await until(() => warnings.length > 0);
    expect(warnings).toHaveLength(1);
    expect(String(warnings[0])).toMatch(/clocks of the processes.*must agree/);
    process.off("warning", onWarning);
    clock.mockRestore();
  });
});

describe.skipIf(!hasRedis || !hasPhpLock)("PHP on a server that does not allow TIME in scripts", () => {
  it("goes by its own clock as well, so that PHP and Node exclude each other", async () => {
    const args = ["--rename-command", "TIME", "TIME-2", "--rename-command", "MONITOR", "TIME"];
    await using server = await startRedis({ args });
    const redis = await connect(server.url);
    const store = new RedisStore(redis);
    const php = new PhpPeer(server);
    try {
      const [theirs, ours] = [newKey(), newKey()];
      expect(await php.ask({ do: "acquire", lock: theirs })).toBe(true);
      const lease = { key: ours, owner: newOwner(), ttlMs: TTL_MS };
      expect(await store.acquire({ ...lease, key: theirs })).toEqual({ outcome: "contended" });
      expect(await store.acquire(lease)).toEqual({ outcome: "granted" });
      expect(await php.ask({ do: "acquire", lock: ours })).toBe(false);
      expect(await store.release(lease)).toBe("released");
      expect(await php.ask({ do: "acquire", lock: ours })).toBe(true);
      expect(await php.ask({ do: "release", lock: theirs })).toBe(null);
      expect(await store.acquire({ ...lease, key: theirs })).toEqual({ outcome: "granted" });
    } finally {
      await php.stop();
      redis.disconnect();
    }
  });
});

describe.skipIf(!hasRedis)("a server that tells the time", () => {
  it("is not sent this process's, however wrong that is, and a user who may not ask is a LockStoreError", async () => {
    await using server = await startRedis();
    const admin = await connect(server.url);
    const key = newKey();
    vi.useFakeTimers({ toFake: ["Date"], now: 0 });
    try {
      expect(await new RedisStore(admin).acquire({ key, owner: newOwner(), ttlMs: TTL_MS })).toMatchObject({
        outcome: "granted",
      });
      expect(await admin.pttl(key)).toBeGreaterThan(TTL_MS / 2);
    } finally {
      vi.useRealTimers();
    }
    await admin.acl("SETUSER", "late", "on", ">password", "~*", "&*", "+@all", "-time");
    const user = await connect(server.url, { username: "late", password: "password" });
    const error = await failure(new RedisStore(user).acquire({ key: newKey(), owner: newOwner(), ttlMs: TTL_MS }));
    expect(error).toBeInstanceOf(LockStoreError);
    expect(String(error)).toMatch(/ACL line/);
    for (const client of [admin, user]) client.disconnect();
  });
});

describe("a refusal of TIME", () => {
  it.each([
    "ERR Error running script (call to f_5a): @user_script:5: @user_script: 5: Write commands not allowed after non deterministic commands. Call redis.replicate_commands() at the start of your script in order to switch to single commands replication mode.",
    "ERR This Redis command is not allowed from script script: 5a, on @user_script:3.",
    "ERR Unknown Redis command called from script script: 5a, on @user_script:3.",
    "ERR Error running script (call to f_5a): @user_script:3: @user_script: 3: Unknown Redis command called from Lua script",
  ])("is known by its words in each version: %s", (message) => {
    expect(mayRefuseTime(new Error(message))).toBe(true);
  });
});
