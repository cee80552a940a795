import { randomUUID } from "node:crypto";
import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import {
  type AttemptState,
  type BackgroundJob,
  type CheckEvent,
  getUpgrade,
  LIVE_ATTEMPT_STATES,
  schema,
  TERMINAL_ATTEMPT_STATES,
  timeOutAttempts,
} from "../../src/index.ts";
import { assignDeadlines } from "../../src/sweeper/assign-deadlines.ts";
import { ensureJob, runBatch } from "../../src/sweeper/background-job.ts";
import { anAttempt } from "../support/attempts.ts";
import { casesOn } from "../support/databases.ts";
import { aDevice, aProduct, aReleasedFirmware } from "../support/records.ts";
import { runJob } from "../support/run-job.ts";

export const sweeperCases = casesOn("the sweeper's jobs", (database) => {
  async function setUp() {
    const { db, query } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "2.0.0" });
    const attempt = async (state: AttemptState, deadline = "now() - interval '1 second'") => {
      const { device } = await aDevice(db, product);
      const made = await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state });
      await query(`update upgrade_attempts set deadline_at = ${deadline} where id = ${made.attemptId}`);
      const look = async () => (await getUpgrade(db, { upgradeId: made.upgradeId })).attempts[0];
      return { ...made, deviceId: device.id, look };
    };
    const rolloutId = `(select r.id from rollouts r join firmware f on f.id = r.firmware_id
      where f.public_id = '${firmware.id}')`;
    const withCounters = () =>
      query(`insert into rollout_counters (rollout_id, revision, live) values (${rolloutId}, 1, 10)`);
    const counters = async () => (await query(`select * from rollout_counters where rollout_id = ${rolloutId}`))[0];
    /** Sets the rollout's or the product's timeouts. */
    const timeouts = (table: "rollouts" | "products", value: object) =>
      query(
        `update ${table} set timeouts_seconds = '${JSON.stringify(value)}' where ${
          table === "rollouts" ? `id = ${rolloutId}` : `name = '${product}'`
        }`,
      );
    return { db, query, attempt, withCounters, counters, timeouts };
  }

  /** Runs the job to its end, and gives on how many rows something was done. */
  async function run(job: BackgroundJob, fence?: bigint): Promise<number> {
    const batches = await runJob(database().db, job, fence === undefined ? {} : { fence });
    return batches.reduce((sum, rows) => sum + rows, 0);
  }

  it.each(LIVE_ATTEMPT_STATES)(
    "ends a silent attempt in the state %s, and says what it was silent in",
    async (state) => {
      const { attempt } = await setUp();
      const { look } = await attempt(state);
      const events: CheckEvent[] = [];
      await run(timeOutAttempts({ intervalMs: 1, observe: (event) => void events.push(event) }));
      const ended = await look();
      expect(ended).toMatchObject({
        ...{ state: "timed_out", failureMessage: `silent while ${state}`, failureCode: null, deadlineAt: null },
        closedAt: expect.any(Date),
        events: [{ seq: 1, reportedState: null, fromState: state, toState: "timed_out" }],
      });
      expect(events).toEqual([{ kind: "moved", to: "timed_out" }]);
    },
  );

  it("leaves alone what is not due, what has no deadline and what is closed", async () => {
    const { attempt } = await setUp();
    const left = [
      await attempt("downloading", "now() + interval '1 minute'"),
      await attempt("downloading", "null"),
      ...(await Promise.all(TERMINAL_ATTEMPT_STATES.map((state) => attempt(state)))),
    ];
    const before = await Promise.all(left.map(({ look }) => look()));
    expect(await run(timeOutAttempts({ intervalMs: 1 }))).toBe(0);
    expect(await Promise.all(left.map(({ look }) => look()))).toEqual(before);
  });

  it("keeps that an operator has cancelled it, and forgets a better offer", async () => {
    const { attempt, query } = await setUp();
    const [cancelled, superseded] = [await attempt("cancelling"), await attempt("cancelling")];
    await query(`update upgrade_attempts set cancel_outcome = 'cancelled' where id = ${cancelled.attemptId}`);
    await query(`update upgrade_attempts set cancel_outcome = 'superseded' where id = ${superseded.attemptId}`);
    expect(await run(timeOutAttempts({ intervalMs: 1 }))).toBe(2);
    const ids = `${cancelled.attemptId}, ${superseded.attemptId}`;
    const rows = await query(
      `select state, cancel_outcome from upgrade_attempts where id in (${ids}) order by cancel_outcome`,
    );
    expect(rows).toEqual([
      { state: "timed_out", cancel_outcome: "cancelled" },
      { state: "timed_out", cancel_outcome: null },
    ]);
  });

  it("frees the place and counts the failure, once, in the transaction of the timeout", async () => {
    const { attempt, withCounters, counters } = await setUp();
    await withCounters();
    for (const state of ["offered", "installing", "cancelling"] as const) await attempt(state);
    expect(await run(timeOutAttempts({ intervalMs: 1 }))).toBe(3);
    expect(await counters()).toMatchObject({ live: 7, failed: 3, succeeded: 0, reached: null });
    expect(await run(timeOutAttempts({ intervalMs: 1 }))).toBe(0);
    expect(await counters()).toMatchObject({ live: 7, failed: 3 });
  });

  it("ends many in several batches", async () => {
    const { db, query, attempt } = await setUp();
    const { attemptId } = await attempt("offered");
    const [template] = await db.select().from(schema.upgradeAttempts).where(eq(schema.upgradeAttempts.id, attemptId));
    await query(`
      with d as (
        insert into devices (public_id, product_id, serial, channel, token_hash)
        select gen_random_uuid(), (select product_id from devices where id = ${template?.deviceId}),
          '${randomUUID()}-' || n, 'stable', sha256(convert_to('${randomUUID()}' || n, 'utf8'))
        from generate_series(1, 450) n returning id
      ), u as (
        insert into upgrades (public_id, device_id, firmware_id, rollout_id)
        select gen_random_uuid(), id, ${template?.firmwareId}, ${template?.rolloutId} from d returning id, device_id
      )
      insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, deadline_at)
      select id, device_id, ${template?.firmwareId}, ${template?.rolloutId}, 1, 'offered', now() - interval '1 minute'
      from u
    `);
    const events: CheckEvent[] = [];
    expect(await run(timeOutAttempts({ intervalMs: 1, observe: (event) => void events.push(event) }))).toBe(451);
    expect(events).toHaveLength(451);
  });

  it("is refused by the job's row once a newer holder of the lock has worked, and writes nothing", async () => {
    const { db, attempt } = await setUp();
    const job = { ...timeOutAttempts({ intervalMs: 1 }), name: randomUUID() };
    await ensureJob(db, job);
    expect(await runBatch(db, { job, fence: 7n })).toMatchObject({ rows: 0 });
    const { look } = await attempt("downloading");
    expect(await runBatch(db, { job, fence: 6n })).toBe("superseded");
    expect(await look()).toMatchObject({ state: "downloading" });
    expect(await runBatch(db, { job, fence: 7n })).toMatchObject({ rows: 1 });
    expect(await runBatch(db, { job, fence: undefined })).toMatchObject({ rows: 0 });
  });

  it("leaves an attempt alone that was written under a newer token, and writes its own where it may", async () => {
    const { query, attempt } = await setUp();
    const [newer, older] = [await attempt("downloading"), await attempt("downloading")];
    await query(`update upgrade_attempts set fence = 9 where id = ${newer.attemptId}`);
    const job = { ...timeOutAttempts({ intervalMs: 1 }), name: randomUUID() };
    expect(await run(job, 8n)).toBe(1);
    expect(await newer.look()).toMatchObject({ state: "downloading" });
    expect(await query(`select state, fence::text from upgrade_attempts where id = ${older.attemptId}`)).toEqual([
      { state: "timed_out", fence: "8" },
    ]);
    expect(await run(job, 9n)).toBe(1);
  });

  it("gives a deadline to what has none, by the rollout's timeout, else the product's, else the service's", async () => {
    const { attempt, timeouts } = await setUp();
    const seconds = async ({ look }: Awaited<ReturnType<typeof attempt>>) => {
      const { deadlineAt } = (await look()) ?? {};
      return deadlineAt == null ? null : Math.round((deadlineAt.getTime() - Date.now()) / 1000 / 60) * 60;
    };
    const job = assignDeadlines({ intervalMs: 1 });
    await timeouts("rollouts", { downloading: 600, cancelling: null });
    await timeouts("products", { downloading: 60, downloaded: 1200, cancelling: 60 });
    const [downloading, downloaded, offered, cancelling] = [
      await attempt("downloading", "null"),
      await attempt("downloaded", "null"),
      await attempt("offered", "null"),
      await attempt("cancelling", "null"),
    ];
    await run(job);
    expect(await seconds(downloading)).toBe(600);
    expect(await seconds(downloaded)).toBe(1200);
    expect(await seconds(offered)).toBe(7 * 86_400);
    expect(await seconds(cancelling)).toBeNull();
    await timeouts("rollouts", { cancelling: 3_600 });
    await run(job);
    expect(await seconds(cancelling)).toBe(3_600);
  });
});
