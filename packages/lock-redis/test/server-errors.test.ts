import { LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newOwner, stored, until } from "./support.ts";

const WRITING = ["acquire", "extend", "release", "promote", "demote", "forceRelease"] as const;
const OPERATIONS = [...WRITING, "isHeld", "inspect"] as const;

describe.skipIf(!hasRedis)("RedisStore, when Redis answers with an error", () => {
  const servers: RedisServer[] = [];
  const clients: Redis[] = [];
  const key = "k";
  const owner = newOwner();

  async function start(...args: string[]): Promise<{ server: RedisServer; redis: Redis; store: RedisStore }> {
    const server = await startRedis({ args });
    servers.push(server);
    const redis = await client(server);
    return { server, redis, store: new RedisStore(redis) };
  }
  async function client(server: RedisServer, options = {}): Promise<Redis> {
    const redis = await connect(server.url, options);
    clients.push(redis);
    return redis;
  }
  async function expectStoreErrors(
    store: RedisStore,
    expected: { operations: readonly (typeof OPERATIONS)[number][]; message: RegExp },
  ) {
    for (const operation of expected.operations) {
      const error = (await failure(store[operation]({ key, owner, ttlMs: 10_000 }))) as LockStoreError;
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ code: "LOCK_STORE_FAULT", operation, key });
      expect(error.message).toMatch(expected.message);
      expect(error.cause).toBeInstanceOf(Error);
      expectNoSecret(error);
    }
  }
  /** Whatever a logger would print of an error must not hold the token. */
  function expectNoSecret(error: unknown) {
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      const shown = JSON.stringify(at, Object.getOwnPropertyNames(at)) + String(at);
      expect(shown).not.toContain(owner);
      expect(shown).not.toContain(owner.slice(0, 12));
      expect(at).not.toHaveProperty("command");
    }
  }

  afterEach(async () => {
    for (const redis of clients.splice(0)) redis.disconnect();
    for (const server of servers.splice(0)) await server.stop();
  });

  it("a replica: writing operations are a LockStoreError that says to connect to the master", async () => {
    const { redis, store } = await start();
    await redis.replicaof("127.0.0.1", 1);
    await expectStoreErrors(store, { operations: WRITING, message: /READONLY.*Connect to the master/ });
    expect(await store.isHeld({ key, owner })).toBe(false);
    expect(await redis.exists(key)).toBe(0);
    await redis.replicaof("NO", "ONE");
    expect(await store.acquire({ key, owner, ttlMs: 10_000 })).toEqual({ outcome: "granted" });
  });

  it("a server at its memory limit still grants, extends and releases: locks must not stop because data grew", async () => {
    const { redis, store } = await start();
    await redis.config("SET", "maxmemory-policy", "noeviction");
    await redis.config("SET", "maxmemory", "1");
    expect(String(await failure(redis.set("other", "x")))).toMatch(/OOM/);
    expect(await store.acquire({ key, owner, ttlMs: 10_000 })).toEqual({ outcome: "granted" });
    const { members, expiresAt } = await stored(redis, key);
    expect(members).toEqual({ [owner]: String(expiresAt), __write__: String(expiresAt) });
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: 10_000 })).toEqual({ outcome: "contended" });
    expect(await store.extend({ key, owner, ttlMs: 10_000 })).toBe("extended");
    expect(await store.isHeld({ key, owner })).toBe(true);
    expect(await store.release({ key, owner })).toBe("released");
  });

  it("a user without the right to a command: a LockStoreError that points to the ACL line, and nothing stays", async () => {
    const { server, redis } = await start();
    await redis.acl("SETUSER", "u", "on", ">p", "~*", "+@all", "-pexpireat");
    const limited = new RedisStore(await client(server, { username: "u", password: "p" }));
    await expectStoreErrors(limited, { operations: ["acquire"], message: /can't run this command.*ACL line/ });
    await until(async () => (await redis.exists(key)) === 0);
  });

  it("a user without the right to the key", async () => {
    const { server, redis } = await start();
    await redis.acl("SETUSER", "u", "on", ">p", "~other:*", "+@all");
    const limited = new RedisStore(await client(server, { username: "u", password: "p" }));
    await expectStoreErrors(limited, { operations: OPERATIONS, message: /NOPERM.*ACL line/ });
  });

  it("a client without password", async () => {
    const server = await startRedis({ args: ["--requirepass", "p"] });
    servers.push(server);
    const store = new RedisStore(await client(server, { protocol: 2, enableReadyCheck: false }));
    await expectStoreErrors(store, { operations: OPERATIONS, message: /NOAUTH.*username and password/ });
  });

  it("a server that is loading its data", async () => {
    const { server, redis } = await start(
      ...["--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"],
      ...["--dbfilename", "dump.rdb"],
    );
    await redis.call("DEBUG", "POPULATE", "2000", "filler", "1000");
    await redis.save();
    redis.disconnect();
    const restarting = server.restart();
    const early = new Redis(server.url, { enableReadyCheck: false, retryStrategy: () => 10 });
    early.on("error", () => {});
    clients.push(early);
    await until(() => early.status === "ready");
    await expectStoreErrors(new RedisStore(early), { operations: OPERATIONS, message: /LOADING.*Try again/ });
    await early.config("SET", "key-load-delay", "0").catch(() => {});
    await server.kill();
    await restarting.catch(() => {});
  });

  it("a server that another script occupies", async () => {
    const { server, redis, store } = await start("--busy-reply-threshold", "20");
    const other = await client(server);
    const endless = failure(other.eval("while true do end", 0));
    await until(async () => /BUSY/.test(String(await redis.ping().catch((error: unknown) => error))));
    await expectStoreErrors(store, { operations: OPERATIONS, message: /BUSY.*SCRIPT KILL/ });
    await redis.script("KILL");
    await endless;
    expect(await redis.exists(key)).toBe(0);
  });

  it("a server with too few replicas to take writes", async () => {
    const { redis, store } = await start();
    await redis.config("SET", "min-replicas-to-write", "1");
    await expectStoreErrors(store, { operations: WRITING, message: /NOREPLICAS.*min-replicas-to-write/ });
  });

  it("a cluster node that does not serve the key", async () => {
    const { store } = await start("--cluster-enabled", "yes");
    await expectStoreErrors(store, { operations: OPERATIONS, message: /CLUSTERDOWN.*healthy/ });
  });

  it("a server without EVALSHA, which quotes the arguments: the token is cut from the message", async () => {
    const { store } = await start("--rename-command", "EVALSHA", "");
    await expectStoreErrors(store, { operations: OPERATIONS, message: /unknown command 'evalsha'/ });
    // Redis stops quoting after 128 bytes: here, in the middle of the token.
    const error = await failure(store.isHeld({ key: "k".repeat(40), owner }));
    expect(String(error)).toMatch(/unknown command 'evalsha'/);
    expectNoSecret(error);
  });

  it("a server without a command that the scripts need: the message says where they are listed", async () => {
    const { redis, store } = await start("--rename-command", "PEXPIREAT", "");
    const warnings: string[] = [];
    const onWarning = (warning: Error) => warnings.push(String(warning));
    process.on("warning", onWarning);
    await expectStoreErrors(store, {
      operations: ["acquire"],
      message: /[Ss]cript.*need the commands of the ACL line/,
    });
    await until(async () => (await redis.exists(key)) === 0);
    expect(warnings).toEqual([]); // It is not taken for a refusal of TIME.
    process.off("warning", onWarning);
  });

  it("a client that is closed", async () => {
    const { redis, store } = await start();
    await redis.quit();
    await expectStoreErrors(store, { operations: OPERATIONS, message: /client has not been closed/ });
  });

  it("a client in subscriber mode of RESP2", async () => {
    const { server } = await start();
    const subscriber = await client(server, { protocol: 2 });
    await subscriber.subscribe("channel");
    await expectStoreErrors(new RedisStore(subscriber), { operations: OPERATIONS, message: /subscriber mode/ });
  });

  it("a client inside MULTI: QUEUED is no grant, and EXEC leaves nothing behind", async () => {
    const { redis, store } = await start();
    await redis.call("MULTI");
    await expectStoreErrors(store, { operations: OPERATIONS, message: /QUEUED.*none inside MULTI/ });
    await redis.call("EXEC");
    await until(async () => (await redis.exists(key)) === 0);
  });

  it("a client function that throws, or returns no client", async () => {
    const down = new RedisStore(() => {
      throw new Error("the pool is empty");
    });
    await expectStoreErrors(down, { operations: OPERATIONS, message: /the pool is empty/ });
    const empty = new RedisStore(() => undefined as never);
    await expectStoreErrors(empty, { operations: OPERATIONS, message: /client must be a client of ioredis/ });
  });
});
