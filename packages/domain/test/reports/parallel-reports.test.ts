import {
  type AttemptState,
  createRollout,
  LIVE_ATTEMPT_STATES,
  REPORTED_STATES,
  type ReportedState,
  takeRolloutStep,
  timeOutAttempts,
  type UpdateAnswer,
  type UpdateChecks,
} from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nextState } from "../../src/attempts/transitions.ts";
import { codeOf, inParallel } from "../support/errors.ts";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";
import { runJob } from "../support/run-job.ts";

const PROCESSES = 4;
const actor = { kind: "system" } as const;
const PROGRESS = ["downloading", "downloaded", "installing", "installed", "confirmed", "denied"] as const;
/** Every attempt is due at once. */
const NO_PATIENCE = Object.fromEntries(LIVE_ATTEMPT_STATES.map((state) => [state, 0]));

describe.skipIf(!hasPostgres)("reports of one attempt by many connections at once", () => {
  let database: PostgresTestDatabase;
  let processes: readonly UpdateChecks[];
  beforeAll(async () => {
    database = await openPostgresClient();
    processes = Array.from({ length: PROCESSES }, () => startChecks(database.hooked({})));
  });
  afterAll(() => database.close());

  /** A device with an open attempt in a rollout that counts, and processes with connections of their own. */
  async function setUp({ impatient = false } = {}) {
    const { db, query } = database;
    const fleet = await createFleet(db, { confirmBy: "report" });
    const firmware = await fleet.release("2.0.0", { startRollout: false });
    const rollout = await createRollout(db, { actor, firmwareId: firmware.id, maxConcurrent: 5 });
    await takeRolloutStep(db, { actor, rolloutId: rollout.id, step: "start" });
    if (impatient) await query(`update rollouts set timeouts_seconds = '${JSON.stringify(NO_PATIENCE)}'`);
    const { tokenHash } = await fleet.device();
    const offer = (await processes[0]?.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } })) as UpdateAnswer;
    const attemptId = offer.attempt.id;
    const report = (index: number, state: ReportedState, deviceTime?: Date) =>
      (processes[index % PROCESSES] as UpdateChecks).recordReport({
        ...{ tokenHash, attemptId },
        report: { state, progressPercent: index % 100, deviceTime },
      });
    const events = () =>
      query(
        `select seq, reported_state, from_state, to_state from attempt_events where attempt_id = ${attemptId} order by seq`,
      );
    const attempt = async () =>
      (await query(`select state, last_seq from upgrade_attempts where id = ${attemptId}`))[0];
    const counters = async () =>
      (
        await query(`
        select live, succeeded, failed from rollout_counters
        where rollout_id = (select id from rollouts where public_id = '${rollout.id}')
      `)
      )[0];
    expect(await counters()).toEqual({ live: 1, succeeded: 0, failed: 0 });
    return { db, report, events, attempt, counters };
  }

  it("are numbered without gap and double, and each follows from the one before, whatever the clocks say", async () => {
    const { report, events, attempt } = await setUp();
    const clocks = [new Date(0), new Date("2099-12-31T23:59:59Z"), undefined];
    const effects = await Promise.all(
      inParallel(200, async (index) => {
        const state = PROGRESS[(index * 7) % PROGRESS.length] as ReportedState;
        return (await report(index, state, clocks[index % clocks.length])).effect;
      }),
    );
    const kept = effects.filter((effect) => effect !== "repeated").length;
    const history = await events();
    expect(history.map(({ seq }) => seq)).toEqual(Array.from({ length: 1 + kept }, (_, index) => index + 1));
    expect(await attempt()).toEqual({ state: "installed", last_seq: 1 + kept });
    for (const [index, event] of history.slice(1).entries()) {
      expect(event["from_state"]).toBe(history[index]?.["to_state"]);
    }
  });

  it.each(["succeeded", "failed", "cancelled"] as const)(
    "%s, sent again and again since its answer was lost, is stored and counted once, and always answered",
    async (state) => {
      const { report, events, attempt, counters } = await setUp();
      const effects = await Promise.all(inParallel(40, async (index) => (await report(index, state)).effect));
      expect(effects.filter((effect) => effect === "moved")).toHaveLength(1);
      expect(effects.filter((effect) => effect === "repeated")).toHaveLength(39);
      expect((await events()).map((event) => event["to_state"])).toEqual(["offered", state]);
      expect(await attempt()).toEqual({ state, last_seq: 2 });
      expect(await counters()).toEqual({
        live: 0,
        succeeded: state === "succeeded" ? 1 : 0,
        failed: state === "failed" ? 1 : 0,
      });
    },
  );

  it("every kind of report, and the sweeper, in any order: the history is one that the table allows", async () => {
    const { db, report, events, attempt, counters } = await setUp({ impatient: true });
    const sweep = timeOutAttempts({ intervalMs: 1 });
    const crowd = (states: readonly ReportedState[]) =>
      Promise.all(
        inParallel(150, async (index) => {
          if (index % 25 === 0) await runJob(db, sweep);
          return codeOf(report(index, states[(index * 7) % states.length] as ReportedState));
        }),
      );
    await crowd(PROGRESS);
    // Where each of its tries found the attempt locked by a report.
    await runJob(db, sweep);
    await crowd(REPORTED_STATES);
    const history = await events();
    expect(history.map((event) => event["to_state"])).toContain("timed_out");
    expect(history.map(({ seq }) => seq)).toEqual(history.map((_, index) => index + 1));
    for (const event of history.slice(1)) {
      const from = event["from_state"] as AttemptState;
      const reported = event["reported_state"] as ReportedState | null;
      const next = nextState({ state: from, cancelOutcome: null, confirmBy: "report" }, reported ?? "timeout");
      expect(next.effect === "moved" ? next.state : next.effect === "history" ? from : "refused").toBe(
        event["to_state"],
      );
    }
    const { state } = (await attempt()) as { state: string };
    const failed = ["failed", "timed_out"].includes(state) ? 1 : 0;
    expect(await counters()).toEqual({ live: 0, succeeded: state === "succeeded" ? 1 : 0, failed });
  });
});
