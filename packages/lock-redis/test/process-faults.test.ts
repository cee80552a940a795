import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { fencedWrite, type Lease, LockFactory, LockLostError } from "@ota/lock-core";
import {
  createTestDatabase,
  fakeTime,
  hasFakeTime,
  hasPostgres,
  hasRedis,
  type RedisServer,
  startRedis,
} from "@ota/testkit";
import type { Redis } from "ioredis";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, failure, newKey, newOwner, until } from "./support.ts";

const silent = { debug() {}, info() {}, warn() {}, error() {} };

describe.skipIf(!hasRedis)("a holder that is stopped past the end of its lease", () => {
  let server: RedisServer;
  let redis: Redis;
  let store: RedisStore;
  let key: string;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    server = await startRedis();
    redis = await connect(server.url);
    store = new RedisStore(redis);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    key = newKey();
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });

  /** Runs a fixture in a process of its own; its lines come one by one. */
  function run(fixture: string, { args, env = {} }: { args: readonly string[]; env?: Record<string, string> }) {
    const file = fileURLToPath(new URL(`fixtures/${fixture}`, import.meta.url));
    const child = spawn(process.execPath, ["--conditions=@ota/source", file, ...args], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    children.push(child);
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    return { child, line: async () => String((await lines.next()).value) };
  }

  it.skipIf(!hasPostgres)(
    "a process stopped by a signal: its late write is refused by the fence of the row",
    async () => {
      const databaseUrl = await createTestDatabase();
      const sql = postgres(databaseUrl, { max: 1 });
      await sql`create table guarded (writer text not null, fence bigint not null)`;
      await sql`insert into guarded values ('nobody', 0)`;
      const ttlMs = 1_000;
      const { child, line } = run("stopped-writer.ts", { args: [server.url, databaseUrl, key, "late", String(ttlMs)] });
      expect(await line()).toBe("held");
      child.kill("SIGSTOP");
      child.stdin?.write("go on\n");

      const other = new LockFactory(store, { fencing: true, logger: silent }).createLock(key);
      const lease = await other.acquire(); // When the stopped process' lease has ended.
      const write = async (token: bigint) =>
        (await sql`update guarded set writer = 'other', fence = ${String(token)} where fence <= ${String(token)}`)
          .count;
      expect(await fencedWrite(lease, write)).toBe(1);

      child.kill("SIGCONT");
      expect(await line()).toBe("refused LOCK_LOST lost");
      expect(await sql`select writer from guarded`).toEqual([{ writer: "other" }]);
      expect(await lease.isHeld()).toBe(true);
      await lease.release();
      await sql.end();
    },
  );

  it("a blocked event loop: the first look at the lease says that it is lost, before any timer has run", async () => {
    const lock = new LockFactory(store, { ttlMs: 150, logger: silent }).createLock(key);
    const lease = (await lock.tryAcquire({ autoExtend: true })) as Lease;
    let aborted = false;
    lease.signal.addEventListener("abort", () => {
      aborted = true;
    });
    const blockedUntil = performance.now() + 400;
    while (performance.now() < blockedUntil);
    expect(lease.isExpired()).toBe(true);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    expect(lease.remainingMs()).toBe(0);
    await until(() => aborted);

    const rival = { key, owner: newOwner(), ttlMs: 10_000 };
    expect(await store.acquire(rival)).toEqual({ outcome: "granted" });
    expect(await lease.extend()).toBe("lost");
    expect(await lease.release()).toBe("not-held");
    expect(await store.isHeld(rival)).toBe(true);
  });

  it("a body that was blocked past its lease and came to its end is reported, not returned", async () => {
    const lock = new LockFactory(store, { ttlMs: 100, logger: silent }).createLock(key);
    const blocked = lock.run(() => {
      const blockedUntil = performance.now() + 250;
      while (performance.now() < blockedUntil);
      return "done";
    });
    expect(await failure(blocked)).toBeInstanceOf(LockLostError);
  });

  describe.skipIf(!hasFakeTime)("a client whose wall clock is wrong", () => {
    const HOUR_MS = 3_600_000;
    let directory: string;
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), "ota-clock-"));
    });
    afterAll(() => rm(directory, { recursive: true, force: true }));

    it.each([
      ["an hour ahead", HOUR_MS, HOUR_MS],
      ["an hour behind", -HOUR_MS, -HOUR_MS],
      ["set forward by an hour while it holds", 0, HOUR_MS],
      ["set back by an hour while it holds", 0, -HOUR_MS],
    ])("%s: its lease lasts as long as any other, for itself and for the others", async (_how, before, after) => {
      const clock = fakeTime(join(directory, key));
      clock.set({ offsetMs: before });
      const ttlMs = 1_500;
      const { line } = run("hold-under-clock.ts", { args: [server.url, key, String(ttlMs)], env: clock.env });
      const start = JSON.parse(await line()) as { wallClock: number; acquired: number };
      clock.set({ offsetMs: after });
      expect(await store.acquire({ key, owner: newOwner(), ttlMs })).toEqual({ outcome: "contended" });
      const [acquired, end] = await Promise.all([
        new LockFactory(store)
          .createLock(key)
          .acquire()
          .then(() => Number(process.hrtime.bigint()) / 1e6),
        line().then((text) => JSON.parse(text) as { wallClock: number; ended: number }),
      ]);
      expect(Math.abs(start.wallClock - Date.now() - before)).toBeLessThan(HOUR_MS / 2);
      expect(Math.abs(end.wallClock - Date.now() - after)).toBeLessThan(HOUR_MS / 2);
      expect(end.ended - start.acquired).toBeGreaterThan(ttlMs - 500);
      expect(end.ended - start.acquired).toBeLessThan(ttlMs + 1_000); // It looks every 2 ms, on a busy machine.
      expect(acquired - start.acquired).toBeGreaterThan(ttlMs - 500);
    });
  });
});
