import { createUpdateChecks, hashToken, schema } from "@ota/domain";
import {
  createTestDatabase,
  hasPostgres,
  hasRedis,
  hookStatements,
  type RedisServer,
  type StatementHooks,
  startRedis,
  withoutRowLocks,
} from "@ota/testkit";
import { drizzle } from "drizzle-orm/postgres-js";
import { pino } from "pino";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Locks, openLocks } from "../../src/locks.ts";
import { createFleet, type Fleet } from "./fleet.ts";

const PROCESSES = 8;
const CHECKS_EACH = 200;
const logger = pino({ level: "silent" });

describe.skipIf(!(hasPostgres && hasRedis))("without constraints and row locks", { timeout: 120_000 }, () => {
  let redis: RedisServer;
  let fleet: Fleet;
  let clients: postgres.Sql[];
  beforeAll(async () => {
    const url = await createTestDatabase();
    redis = await startRedis();
    fleet = await createFleet(url);
    clients = Array.from({ length: PROCESSES }, () => postgres(url, { max: 2, onnotice: () => {} }));
    await fleet.sql`alter table upgrades drop constraint upgrades_device_id_firmware_id_unique`;
    await fleet.sql`alter table upgrade_attempts drop constraint upgrade_attempts_upgrade_id_n_unique`;
    await fleet.sql`drop index upgrade_attempts_live_device_id_unique`;
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await fleet[Symbol.asyncDispose]();
    await redis.stop();
  });

  /** Checks of one device at once, by as many single-flights, Redis connections and pools as there are processes. */
  async function race(redisUrlOf: (process: number) => string | undefined, hooks: StatementHooks = withoutRowLocks) {
    const [token = ""] = await fleet.register(1);
    const tokenHash = hashToken(token);
    const locks: Locks[] = [];
    for (let process = 0; process < PROCESSES; process++) {
      const redisUrl = redisUrlOf(process);
      locks.push(await openLocks({ redisUrl, keyPrefix: "", operationTimeoutMs: 5_000, ttlMs: 60_000, logger }));
    }
    const outcomes = { created: 0, conflictsLost: 0 };
    const checks = locks.map(({ factory }, process) =>
      createUpdateChecks({
        db: drizzle(hookStatements(clients[process] as postgres.Sql, hooks), { schema }),
        locks: factory,
        logger,
        observer: ({ kind }) => {
          if (kind === "created") outcomes.created += 1;
          if (kind === "conflict_lost") outcomes.conflictsLost += 1;
        },
        // Long enough for every process's turn on a slow machine: contention itself is not the point.
        settings: { lockMaxAttempts: 500, lockRetryIntervalMs: 10, lockTtlMs: 60_000 },
      }),
    );
    const answers = await Promise.all(
      checks.flatMap((one) => Array.from({ length: CHECKS_EACH }, () => one.checkForUpdate({ tokenHash }))),
    );
    await Promise.all([...checks, ...locks].map((opened) => opened.close()));
    const attempts = new Set(answers.map((answer) => (answer.decision === "update" ? answer.attempt.id : "none")));
    return { ...outcomes, answers: answers.length, answeredAttempts: attempts.size, ...(await fleet.recordsOf(token)) };
  }

  test("the lock in Redis alone lets one record be made", async () => {
    expect(await race(() => redis.url)).toEqual({
      ...{ created: 1, conflictsLost: 0, answers: PROCESSES * CHECKS_EACH, answeredAttempts: 1 },
      ...{ upgrades: 1, attempts: 1, live: 1 },
    });
  });

  test("and without it each process makes its own: the test above can fail", async () => {
    let waiting = 0;
    const all = Promise.withResolvers<void>();
    const before = async (text: string) => {
      if (!text.includes("insert into upgrades ")) return;
      // However fast one of them is: all of them decide before anybody writes.
      if (++waiting === PROCESSES) all.resolve();
      await all.promise;
    };
    // Nor does any of them look whether another was faster.
    const rewrite = (text: string) =>
      (withoutRowLocks.rewrite?.(text) ?? text).replace("is not distinct from history", "$& or true");
    expect((await race(() => undefined, { rewrite, before })).upgrades).toBeGreaterThanOrEqual(PROCESSES);
  });
});
