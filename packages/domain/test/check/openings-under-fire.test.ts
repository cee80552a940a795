import { randomUUID } from "node:crypto";
import { foldFigures, OtaError, resetUpgrade, takeRolloutStep, timeOutAttempts, updateDevice } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";
import { runJob } from "../support/run-job.ts";

const actor = { kind: "system" } as const;
const RUN_MS = 5_000;
const CROWDS = 6;
/** More than share one statement. */
const AT_ONCE = 40;
const CAP = 12;

/** Those that open attempts, in this database. */
const OPENING = `pid <> pg_backend_pid() and datname = current_database() and state = 'active' and query like '%with given as%'`;

/** The most attempts of a rollout that were open at any moment, by their times. */
const MOST_OPEN = `
  select max(open)::int as most from (
    select sum(step) over (partition by rollout_id order by at, step) as open from (
      select rollout_id, opened_at as at, 1 as step from upgrade_attempts
      union all
      select rollout_id, closed_at, -1 from upgrade_attempts where closed_at is not null
    ) steps join rollouts on rollouts.id = rollout_id where max_concurrent is not null
  ) sums
`;

const WRONG_FIGURES = `
  select * from (select rollout_id, state, count(*)::int as n from upgrade_attempts group by 1, 2) attempts
  full join (
    select owner_id as rollout_id, key as state, sum(n)::int as n from (
      select kind, owner_id, key, count as n from figures union all select kind, owner_id, key, delta from figure_deltas
    ) each where kind = 'rollout_state' group by 1, 2 having sum(n) <> 0
  ) told using (rollout_id, state)
  where attempts.n is distinct from told.n
`;

const HALF_DONE = `
  select u.id from upgrades u left join upgrade_attempts a on a.upgrade_id = u.id
  left join attempt_events e on e.attempt_id = a.id and e.seq = 1 where e.attempt_id is null
`;

describe.skipIf(!hasPostgres)("attempts that are opened together", () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
  });
  afterAll(() => database.close());

  it("are there whole or not at all while statements are cancelled and connections are killed, and everybody is answered", async () => {
    const { db, query } = database;
    const random = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)] as T;
    const fleet = await createFleet(db, { confirmBy: "report" });
    const rollouts: string[] = [];
    const terms = { maxAttempts: 100, backoffSeconds: 0 };
    for (const [version, own] of [
      ["2.0.0", { maxConcurrent: CAP, groups: ["a"] }],
      ["3.0.0", { maxConcurrent: CAP, groups: ["b"] }],
      ["4.0.0", { groups: ["c"] }],
    ] as const) {
      await fleet.release(version, { startRollout: false });
      rollouts.push((await fleet.rollout(version, { ...terms, ...own })).id);
    }
    const devices = await Promise.all(Array.from({ length: 90 }, () => fleet.device(randomUUID())));
    for (const [i, { id: deviceId }] of devices.entries())
      await updateDevice(db, { actor, deviceId, groups: [["a", "b", "c"][i % 3] as string] });

    const processes = [1, 2, 3].map(() => startChecks(database.hooked({ prepared: true })));
    const outcomes = new Map<string, number>();
    const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    const endsAt = performance.now() + RUN_MS;
    const noted = async (name: string, work: () => Promise<unknown>) => {
      try {
        await work();
      } catch (error) {
        count(`${name}: ${codeOf(error)}`);
      }
    };

    async function crowd(): Promise<void> {
      while (performance.now() < endsAt) {
        const checks = random(processes);
        const check = async () => {
          const { tokenHash } = random(devices);
          const answer = await checks.checkForUpdate({ tokenHash });
          if (answer.decision === "none") return;
          count(answer.how);
          const report = { tokenHash, attemptId: answer.attempt.id, report: { state: "failed" } } as const;
          if (Math.random() < 0.6) await checks.recordReport(report);
        };
        await Promise.all(Array.from({ length: AT_ONCE }, () => noted("check", check)));
      }
    }

    async function every(pauseMs: number, name: string, work: () => Promise<unknown>): Promise<void> {
      while (performance.now() < endsAt) {
        await noted(name, work);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }

    await Promise.all([
      ...Array.from({ length: CROWDS }, crowd),
      every(40, "cancel", () => query(`select pg_cancel_backend(pid) from pg_stat_activity where ${OPENING}`)),
      every(300, "kill", () => query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OPENING}`)),
      every(150, "step", async () => {
        const rolloutId = random(rollouts);
        await takeRolloutStep(db, { actor, rolloutId, step: "pause" });
        await takeRolloutStep(db, { actor, rolloutId, step: "resume" });
      }),
      every(40, "reset", async () => {
        const [row] = await query("select public_id::text from upgrades order by random() limit 1");
        if (row !== undefined) await resetUpgrade(db, { actor, upgradeId: String(row["public_id"]) });
      }),
      every(100, "silence", async () => {
        await query(`update upgrade_attempts set deadline_at = now() where id in (
          select id from upgrade_attempts where closed_at is null and random() < 0.1 for update skip locked)`);
        await runJob(db, timeOutAttempts({ intervalMs: 1 }));
      }),
    ]);
    await Promise.all(processes.map((one) => one.close()));

    console.log(JSON.stringify(Object.fromEntries(outcomes)));
    // Statements that were cancelled, and connections that were closed; no deadlock, and nothing else.
    const expected = /^(created|found|joined|\w+: (57014|57P01|ECONNRESET|CONNECTION_CLOSED|SERVICE_BUSY))$/;
    expect([...outcomes.keys()].filter((outcome) => !expected.test(outcome))).toEqual([]);
    expect(outcomes.get("check: 57014")).toBeGreaterThan(0);
    expect(await query(HALF_DONE)).toEqual([]);
    expect((await query(MOST_OPEN))[0]?.["most"]).toBeLessThanOrEqual(CAP);
    const counters = await query(`
      select c.live, count(*) filter (where a.closed_at is null)::int as open
      from rollout_counters c left join upgrade_attempts a using (rollout_id) group by c.rollout_id
    `);
    for (const { live, open } of counters) expect(live).toBe(open);
    await runJob(db, foldFigures({ intervalMs: 1 }));
    expect(await query(WRONG_FIGURES)).toEqual([]);
  }, 60_000);
});

/** Of the innermost cause. */
function codeOf(error: unknown): string {
  if (error instanceof OtaError) return error.code;
  const { code, cause } = error as { readonly code?: string; readonly cause?: unknown };
  return cause === undefined ? String(code ?? error) : codeOf(cause);
}
