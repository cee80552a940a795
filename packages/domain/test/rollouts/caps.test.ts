import { randomUUID } from "node:crypto";
import { type CheckAnswer, type GivenTerms, type ReportedState, ServiceBusyError, schema } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRollout, takeRolloutStep } from "../../src/index.ts";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const PROCESSES = 4;
const DEVICES = 150;
const CHECKS = 3_000;
/** At once, over all processes. */
const WORKERS = 48;

/** What a device says that ends its attempt, most of them not for good. */
const ENDS: readonly ReportedState[] = ["failed", "failed", "failed", "cancelled", "succeeded"];

describe.skipIf(!hasPostgres)("the caps of a rollout", () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
  });
  afterAll(() => database.close());

  /**
   * Thousands of checks of processes with connections of their own, devices that end some of their attempts in between,
   * and what the history says about it afterwards: the greatest number of attempts that were open at one time, and of
   * devices that ever had one.
   */
  async function storm(terms: GivenTerms) {
    const fleet = await createFleet(database.db, { confirmBy: "report" });
    const { id: firmwareId } = await fleet.release("2.0.0", { startRollout: false });
    const actor = { kind: "system" } as const;
    const limits = { maxAttempts: 100, backoffSeconds: 0 };
    const { id: rolloutId } = await createRollout(database.db, { actor, firmwareId, ...limits, ...terms });
    await takeRolloutStep(database.db, { actor, rolloutId, step: "start" });
    const processes = Array.from({ length: PROCESSES }, () => startChecks(database.hooked({})));
    const devices = await Promise.all(Array.from({ length: DEVICES }, () => fleet.device(randomUUID())));

    const answers: Record<string, number> = {};
    const count = (answer: CheckAnswer) => {
      const words = answer.decision === "update" ? answer.how : answer.reason;
      answers[words] = (answers[words] ?? 0) + 1;
    };
    let left = CHECKS;
    const random = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)] as T;
    const told: { readonly tokenHash: Buffer; readonly attemptId: number }[] = [];
    const work = async () => {
      while (left > 0) {
        left -= 1;
        const { tokenHash } = random(devices);
        try {
          const answer = await random(processes).checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
          count(answer);
          if (answer.decision === "update") told.push({ tokenHash, attemptId: answer.attempt.id });
        } catch (error) {
          if (!(error instanceof ServiceBusyError)) throw error;
        }
        const [ending] = Math.random() < 0.4 ? told.splice(Math.floor(Math.random() * told.length), 1) : [];
        // It may have ended already: then this word is history.
        if (ending !== undefined) await random(processes).recordReport({ ...ending, report: { state: random(ENDS) } });
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));

    const [history] = await database.query(`
      with moves as (
        select opened_at as at, 1 as step from upgrade_attempts a join rollouts r on r.id = a.rollout_id
        where r.public_id = '${rolloutId}'
        union all
        select closed_at, -1 from upgrade_attempts a join rollouts r on r.id = a.rollout_id
        where r.public_id = '${rolloutId}' and closed_at is not null
      ), open as (
        -- Of the same millisecond whoever leaves makes room for whoever comes.
        select sum(step) over (order by at, step rows unbounded preceding) as n from moves
      )
      select
        (select max(n) from open)::int as most,
        (select count(*) from moves where step = 1)::int as attempts,
        (select count(distinct a.device_id) from upgrade_attempts a join rollouts r on r.id = a.rollout_id
          where r.public_id = '${rolloutId}')::int as devices,
        (select count(*) from upgrade_attempts a join rollouts r on r.id = a.rollout_id
          where r.public_id = '${rolloutId}' and a.closed_at is null)::int as live,
        (select count(*) from upgrade_attempts a join rollouts r on r.id = a.rollout_id
          where r.public_id = '${rolloutId}' and a.state = 'succeeded')::int as succeeded,
        (select count(*) from upgrade_attempts a join rollouts r on r.id = a.rollout_id
          where r.public_id = '${rolloutId}' and a.state in ('failed', 'timed_out'))::int as failed
    `);
    const [counters] = await database.db
      .select({
        live: schema.rolloutCounters.live,
        devices: schema.rolloutCounters.granted,
        succeeded: schema.rolloutCounters.succeeded,
        failed: schema.rolloutCounters.failed,
      })
      .from(schema.rolloutCounters)
      .innerJoin(schema.rollouts, eq(schema.rollouts.id, schema.rolloutCounters.rolloutId))
      .where(eq(schema.rollouts.publicId, rolloutId));
    const { most, attempts, ...counted } = history as Record<string, number>;
    return { answers, most, attempts, counted, counters };
  }

  it("bound the open attempts and the devices that ever had one, however many ask at once", async () => {
    const { answers, most, attempts, counted, counters } = await storm({ maxConcurrent: 7, maxTotal: 60 });
    expect(most).toBeLessThanOrEqual(7);
    expect(most).toBeGreaterThan(3);
    expect(counted["devices"]).toBeLessThanOrEqual(60);
    expect(counted["devices"]).toBeGreaterThan(30);
    // Places were given back and taken again, and many were refused.
    expect(attempts).toBeGreaterThan(70);
    expect(answers["CAP_REACHED"]).toBeGreaterThan(70);
    expect(counters).toEqual(counted);
  }, 120_000);

  it("let one device in at a time where only one may be open", async () => {
    const { most, attempts, counted, counters } = await storm({ maxConcurrent: 1 });
    expect(most).toBe(1);
    expect(attempts).toBeGreaterThan(3);
    expect(counters).toEqual(counted);
  }, 120_000);

  it("count nothing else where there is none: the numbers above are not those of a slow fleet", async () => {
    const { most, counted } = await storm({ maxTotal: DEVICES });
    expect(most).toBeGreaterThan(20);
    expect(counted["devices"]).toBeGreaterThan(60);
  }, 120_000);
});
