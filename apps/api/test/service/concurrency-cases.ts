import { setTimeout as sleep } from "node:timers/promises";
import { hashToken } from "@ota/domain";
import { createTestDatabase, hasPostgres, hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CheckSender, createCheckSender, quantile, type StormAnswer } from "./check-storm.ts";
import { createFleet, type Fleet } from "./fleet.ts";
import { type ListeningService, startServiceProcess } from "./service-process.ts";

/** How much of it is run. */
export interface ConcurrencySize {
  readonly processes: number;
  /** How many checks each process gets at once. */
  readonly checks: number;
  /** In how many storms redis-server is killed, each time later. */
  readonly killRounds: number;
  readonly hungSeconds: number;
  /** What 99 of 100 checks must keep to while Redis hangs, on a machine that is not late by itself. */
  readonly hungP99Ms: number;
}

/** The proofs that checks by several processes make one record, in a given size. */
export function describeConcurrency(size: ConcurrencySize): void {
  const title = "checks by several processes at once";
  describe.skipIf(!(hasPostgres && hasRedis))(title, { timeout: 300_000 }, () => {
    let databaseUrl: string;
    let redis: RedisServer;
    let fleet: Fleet;
    let services: ListeningService[];
    let sender: CheckSender;

    const start = (env: Readonly<Record<string, string>> = {}) =>
      startServiceProcess({ env: { DATABASE_URL: databaseUrl, REDIS_URL: redis.url, ...env } });

    beforeAll(async () => {
      [databaseUrl, redis] = await Promise.all([createTestDatabase(), startRedis()]);
      fleet = await createFleet(databaseUrl);
      services = await Promise.all(Array.from({ length: size.processes }, () => start()));
      sender = createCheckSender();
    }, 300_000);
    afterAll(async () => {
      sender[Symbol.dispose]();
      await Promise.all(services.map((service) => service.dispose()));
      await fleet[Symbol.asyncDispose]();
      await redis.stop();
    });

    const storm = (token: string): Promise<StormAnswer[]> =>
      Promise.all(services.flatMap(({ url }) => Array.from({ length: size.checks }, () => sender.check(url, token))));

    /** One record, one live attempt, and every answer is that attempt or SERVICE_BUSY, which at most this part of them is. */
    async function expectOneAttempt(
      token: string,
      answers: readonly StormAnswer[],
      maxBusyPart: number,
    ): Promise<void> {
      expect(await fleet.recordsOf(token)).toEqual({ upgrades: 1, attempts: 1, live: 1 });
      const offered = answers.filter(({ status }) => status === 200);
      const busy = answers.filter(({ status, body }) => status === 503 && body.code === "SERVICE_BUSY");
      expect(offered.length + busy.length, `answers: ${JSON.stringify(kindsOf(answers))}`).toBe(answers.length);
      expect(busy.length).toBeLessThanOrEqual(maxBusyPart * answers.length);
      expect(new Set(offered.map(({ body }) => `${body.attempt.id} ${body.upgradeId}`)).size).toBe(1);
    }

    test(`${size.processes} × ${size.checks} checks for one device: one record, and at most 1 % SERVICE_BUSY`, async () => {
      const [warm = "", token = ""] = await fleet.register(2);
      // Connections and code are made by another device's storm, so that this one really is at once.
      await storm(warm);
      const answers = await storm(token);
      report("one device", answers);
      await expectOneAttempt(token, answers, 0.01);
    });

    test("the same with redis-server killed in the middle: still one record, and nothing but answers", async () => {
      const tokens = await fleet.register(size.killRounds);
      for (const [round, token] of tokens.entries()) {
        const answering = storm(token);
        await sleep(round * 40);
        await redis.kill();
        const answers = await answering;
        report(`Redis killed after ${round * 40} ms`, answers);
        await expectOneAttempt(token, answers, 0.01);
        await redis.restart();
        await sleep(500);
      }
    });

    /** An open loop of 100 first checks a second: each leaves when its time has come, however late the others are. */
    async function steadyChecks(seconds: number): Promise<StormAnswer[]> {
      const answering: Promise<StormAnswer>[] = [];
      const tokens = await fleet.register(100 * seconds);
      const beganAt = performance.now();
      for (const [index, token] of tokens.entries()) {
        await sleep(Math.max(0, beganAt + index * 10 - performance.now()));
        answering.push(sender.check(services[index % services.length]?.url ?? "", token));
      }
      return Promise.all(answering);
    }

    test(`Redis hung under 100 checks a second: p99 within ${size.hungP99Ms} ms, and half of them wait for nothing`, async () => {
      const healthy = await steadyChecks(2);
      report("Redis healthy", healthy);
      redis.pause();
      try {
        const hung = await steadyChecks(size.hungSeconds);
        report("Redis hung", hung);
        expect(kindsOf(hung)).toEqual({ "200 ok": hung.length });
        // A machine that is late by itself is late here as well. Without the breaker each check would wait 250 ms.
        expect(timeWithin(0.5, hung)).toBeLessThan(timeWithin(0.5, healthy) + 150);
        expect(timeWithin(0.99, hung)).toBeLessThan(Math.max(size.hungP99Ms, timeWithin(0.99, healthy) + 300));
      } finally {
        redis.resume();
      }
    });

    test("a process killed while it holds the lock: another gets it after the TTL, nothing is lost or doubled", async () => {
      const env = { LOCK_TTL_MS: "3000" };
      const [holder, other] = await Promise.all([start(env), start(env)]);
      try {
        const [token = ""] = await fleet.register(1);
        const ofDevice = fleet.sql`where token_hash = ${hashToken(token)}`;
        // It has told its version before, while nothing was offered to it: what is left to write is the record.
        await fleet.sql`update devices set channel = 'empty' ${ofDevice}`;
        for (const { url } of [holder, other]) {
          expect((await sender.check(url, token)).body.decision).toBe("none");
        }
        await fleet.sql`update devices set channel = 'stable' ${ofDevice}`;
        // Holding the device's row keeps the holder of the lock within its critical section.
        let killedAt = 0;
        await fleet.sql.begin(async (sql) => {
          await sql`select 1 from devices ${ofDevice} for update`;
          const dying = sender.check(holder.url, token);
          await expect.poll(() => redis.cli("keys", "ota:check:*"), { timeout: 10_000 }).not.toBe("");
          holder.kill("SIGKILL");
          killedAt = performance.now();
          expect((await dying).status).toBe(0);
        });
        const refused: StormAnswer[] = [];
        let answer = await sender.check(other.url, token);
        while (answer.status !== 200) {
          refused.push(answer);
          answer = await sender.check(other.url, token);
        }
        const tookMs = performance.now() - killedAt;
        console.log(
          `holder killed: answered after ${Math.round(tookMs)} ms, TTL 3000 ms, ${refused.length} × SERVICE_BUSY before`,
        );
        expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(["SERVICE_BUSY"]));
        expect(tookMs).toBeGreaterThan(1500);
        expect(tookMs).toBeLessThan(5000);
        expect(await fleet.recordsOf(token)).toEqual({ upgrades: 1, attempts: 1, live: 1 });
      } finally {
        await Promise.all([holder, other].map((service) => service.dispose()));
      }
    });

    test("with the unique constraints dropped, and Redis healthy: still one record", async () => {
      const unique = ["upgrades_device_id_firmware_id_unique", "upgrade_attempts_upgrade_id_n_unique"] as const;
      await fleet.sql`alter table upgrades drop constraint ${fleet.sql(unique[0])}`;
      await fleet.sql`alter table upgrade_attempts drop constraint ${fleet.sql(unique[1])}`;
      await fleet.sql`drop index upgrade_attempts_live_device_id_unique`;
      const [token = ""] = await fleet.register(1);
      const answers = await storm(token);
      report("without the constraints", answers);
      await expectOneAttempt(token, answers, 0.01);
    });

    test("no process has answered 500 or ended", () => {
      for (const { log, errors } of services) {
        expect(log()).not.toContain('"status":500');
        expect(log()).not.toContain('"level":"error"');
        expect(errors()).toBe("");
      }
    });
  });
}

function kindsOf(answers: readonly StormAnswer[]): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const { status, body } of answers) {
    const kind = `${status} ${body?.code ?? "ok"}`;
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

/** The time that the given part of the answers took at most. */
function timeWithin(part: number, answers: readonly StormAnswer[]): number {
  return quantile(
    answers.map(({ durationMs }) => durationMs),
    part,
  );
}

function report(title: string, answers: readonly StormAnswer[]): void {
  const [p50, p99, max] = [0.5, 0.99, 1].map((part) => Math.round(timeWithin(part, answers)));
  console.log(`${title}: ${JSON.stringify(kindsOf(answers))}, p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`);
}
