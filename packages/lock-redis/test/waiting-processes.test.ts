import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { areDisjoint, Contender, contend, fairness } from "./contenders.ts";
import { hasPhpLock, PhpPeer } from "./php-peer.ts";
import { connect, newKey, newOwner, pause, until } from "./support.ts";

/** What a dead waiter may cost the others, and what a busy machine adds. */
const DEAD_WAITER_MS = 250;
const MARGIN_MS = 250;

describe.skipIf(!hasRedis)("processes that wait for one lock", () => {
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

  it("end by themselves though their store was not closed", async () => {
    const fixture = fileURLToPath(new URL("fixtures/leave-after-waiting.ts", import.meta.url));
    const args = ["--conditions=@ota/source", fixture, server.url];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 });
    const [doneAt = Number.NaN, endedAt = Number.NaN] = stdout.trim().split("\n").map(Number);
    expect(endedAt - doneAt).toBeLessThan(3_000); // The connection would be given up after ten seconds.
  });

  it.each(["any", "node-only"] as const)("share it evenly and never hold it at once, with peers: %s", async (peers) => {
    const request = { url: server.url, key: newKey(), waiters: 8, holdMs: 1, durationMs: 1_500, store: { peers } };
    const turns = await contend(await Promise.all([Contender.start(request), Contender.start(request)]));
    expect(areDisjoint(turns)).toBe(true);
    expect(fairness(turns, 16)).toBeGreaterThan(0.95);
  });

  it.each(["SIGSTOP", "SIGKILL"] as const)(
    "lose 250 ms at most by each waiting process that gets a %s",
    async (signal) => {
      const key = newKey();
      const request = { url: server.url, key, waiters: 1, holdMs: 1, durationMs: 60_000, times: 1 };
      const dead = await Promise.all([Contender.start(request), Contender.start(request)]);
      const alive = await Contender.start(request);
      const holder = new RedisStore(redis);
      const owner = newOwner();
      await holder.acquire({ key, owner, ttlMs: 60_000 });
      const inLine = async () =>
        (await redis.zrange(`{${key}}:queue`, 0, "-1")).filter((name) => name.startsWith("+")).length;
      for (const [index, contender] of [...dead, alive].entries()) {
        contender.go();
        await until(async () => (await inLine()) === index + 1);
      }
      for (const contender of dead) contender.process.kill(signal);
      await pause(50);
      const releasedAt = Number(process.hrtime.bigint()) / 1e6;
      await holder.release({ key, owner });
      const [turn] = await alive.turns();
      for (const contender of dead) await contender.kill();
      expect((turn?.acquired ?? Number.NaN) - releasedAt).toBeLessThan(2 * DEAD_WAITER_MS + MARGIN_MS);
    },
  );

  it("go on when Redis has lost its data and scripts", async () => {
    const request = { url: server.url, key: newKey(), waiters: 4, holdMs: 5, durationMs: 60_000, times: 5, ttlMs: 500 };
    const contenders = await Promise.all([Contender.start(request), Contender.start(request)]);
    await redis.script("FLUSH");
    const ended = contend(contenders);
    await pause(30);
    await redis.flushall();
    expect((await ended).length).toBe(40);
  });

  // With node-only peers the lock is never free by itself, so that PHP would wait for ever.
  it.skipIf(!hasPhpLock).each(["any", "node-only"] as const)(
    "leave it to a PHP waiter that polls every 100 ms within 5 s, with yieldToPollersEveryMs and peers: %s",
    async (peers) => {
      const key = newKey();
      const store = { peers, yieldToPollersEveryMs: 2_000 };
      const request = { url: server.url, key, waiters: 4, holdMs: 5, durationMs: 60_000, store };
      const contenders = await Promise.all([Contender.start(request), Contender.start(request)]);
      const php = new PhpPeer(server);
      try {
        for (const contender of contenders) contender.go();
        await pause(500);
        const startedAt = performance.now();
        expect(await php.ask({ do: "wait", lock: key })).toBe(true);
        expect(performance.now() - startedAt).toBeLessThan(5_000);
        expect(await php.ask({ do: "release", lock: key })).toBe(null);
      } finally {
        for (const contender of contenders) await contender.kill();
        await php.stop();
      }
    },
    40_000,
  );
});
