import { readFileSync } from "node:fs";
import { LockFactory, LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, newOwner, pause, until } from "./support.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const [, rules = ""] = /^user locks (.*)$/m.exec(readme) ?? [];
const commands = rules.split(" ").filter((rule) => rule.startsWith("+"));

describe.skipIf(!hasRedis)("the ACL line of the README", () => {
  let server: RedisServer;
  let admin: Redis;
  const owner = newOwner();

  beforeAll(async () => {
    server = await startRedis();
    admin = await connect(server.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  /** Every path through the scripts, as a user with exactly these rules. */
  async function exerciseAs(user: string): Promise<void> {
    await admin.flushall();
    await admin.script("FLUSH");
    const redis = await connect(server.url, { username: user, password: "password" });
    try {
      const store = new RedisStore(redis, { keyPrefix: "ota:" });
      const claim = { key: "k", owner, ttlMs: 10_000 };
      for (const _ of ["EVAL", "EVALSHA"]) {
        await store.acquire(claim);
        await store.acquire({ ...claim, owner: newOwner() });
        await store.extend(claim);
        await store.isHeld(claim);
        await store.release(claim);
      }
      for (const fencing of [false, true]) {
        await store.acquire({ ...claim, mode: "shared", fencing });
        await store.promote({ ...claim, fencing });
        await store.acquire({ ...claim, fencing });
        await store.demote(claim);
      }
      await store.inspect(claim);
      await store.forceRelease(claim);
      await admin.set("ota:k", "a string");
      await store.acquire(claim);
      await store.isHeld(claim);
      await store.inspect(claim);
      await admin.del("ota:k");
      await admin.zadd("ota:k", "+inf", "reader", Date.now() + 60_000, owner);
      await store.release(claim);
    } finally {
      redis.disconnect();
    }
  }

  it("is enough for every operation", async () => {
    await admin.acl("SETUSER", "locks", ...rules.split(" "));
    await exerciseAs("locks");
  });

  /** Waits behind somebody else's lease as the user, and gives the kind of name that it stands in line by, once it has it. */
  async function kindInLineAs(user: string): Promise<string> {
    await admin.flushall();
    const redis = await connect(server.url, { username: user, password: "password" });
    const store = new RedisStore(redis, { keyPrefix: "ota:" });
    const lock = new LockFactory(store).createLock("k");
    const lease = await lock.acquire();
    const inLine = async () => (await admin.zrange("ota:{ota:k}:queue", 0, "-1")).map((name) => name.charAt(0));
    const waiting = new LockFactory(new RedisStore(redis, { keyPrefix: "ota:" })).createLock("k").acquire();
    await until(async () => (await inLine()).length === 1);
    await pause(500);
    const [kind = "none"] = await inLine();
    await lease.release();
    await (await waiting).release();
    redis.disconnect();
    return kind;
  }

  it("lets waiters be woken, and is enough to poll without its part for messages", async () => {
    expect(await kindInLineAs("locks")).toBe("+");
    const silent = rules.split(" ").filter((rule) => rule !== "+subscribe" && rule !== "+publish" && rule !== "&ota:*");
    await admin.acl("SETUSER", "silent", "reset", ...silent);
    expect(await kindInLineAs("silent")).toBe("-");
  });

  it("lets the user at no other key", async () => {
    const redis = await connect(server.url, { username: "locks", password: "password" });
    const error = await new RedisStore(redis).isHeld({ key: "other", owner }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockStoreError);
    redis.disconnect();
  });

  // INFO is not for the store but for the ready check of ioredis, which warns without it and goes on.
  const optional = ["+info", "+publish", "+subscribe"];
  it.each(commands.filter((command) => !optional.includes(command)))(
    "has nothing to spare: %s is needed",
    async (command) => {
      await admin.acl("SETUSER", "fewer", "reset", ...rules.split(" ").filter((rule) => rule !== command));
      await expect(exerciseAs("fewer")).rejects.toBeInstanceOf(LockStoreError);
    },
  );
});
