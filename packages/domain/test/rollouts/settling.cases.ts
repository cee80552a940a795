import { expect, it } from "vitest";
import {
  type Database,
  type GivenTerms,
  getRollout,
  hashToken,
  listAudit,
  type ReportedState,
  settleRollouts,
  takeRolloutStep,
  type UpdateAnswer,
  updateRollout,
} from "../../src/index.ts";
import { ensureJob, runBatch } from "../../src/sweeper/background-job.ts";
import { casesOn } from "../support/databases.ts";
import { startChecks } from "../support/fleet.ts";
import { aDevice, SYSTEM } from "../support/records.ts";
import { aReleasedDraft } from "./support.ts";

/** A running rollout, and devices that ask and say how it ended. */
async function aRunning(db: Database, terms: GivenTerms) {
  const rollout = await aReleasedDraft(db, terms);
  const { id: rolloutId } = rollout;
  const step = (name: "start" | "resume") => takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: name });
  await step("start");
  const checks = startChecks(db);
  const ask = async () => {
    const { token } = await aDevice(db, rollout.firmware.product);
    const tokenHash = hashToken(token);
    return { tokenHash, answer: await checks.checkForUpdate({ tokenHash, reported: { version: "0.1.0" } }) };
  };
  /** A further device that takes it and ends so; or why it got nothing. */
  async function end(state: ReportedState): Promise<string> {
    const { tokenHash, answer } = await ask();
    // Seldom enough a phase leaves this device out.
    if (answer.decision === "none" && answer.reason === "NOT_IN_ROLLOUT") return end(state);
    if (answer.decision === "none") return answer.reason;
    const { id: attemptId } = answer.attempt;
    await checks.recordReport({ tokenHash, attemptId, report: { state, version: "1.0.0" } });
    return "ended";
  }
  return { rolloutId, step, checks, ask, end, read: () => getRollout(db, { rolloutId }) };
}

/** What the sweeper does. */
async function settle(db: Database): Promise<void> {
  const job = settleRollouts({ intervalMs: 1 });
  await ensureJob(db, job);
  for (let more = true; more; ) {
    const result = await runBatch(db, { job, fence: undefined });
    if (result === "superseded") throw new Error("Nobody else does this job here.");
    more = result.more;
  }
}

export const settlingCases = casesOn("thresholds and phases", (database) => {
  it("so many successes pause it, and from the last of them on no place is given", async () => {
    const { db } = database();
    const { end, read, rolloutId } = await aRunning(db, { successThreshold: 2 });
    expect([await end("succeeded"), await end("succeeded")]).toEqual(["ended", "ended"]);
    // Not paused yet: nobody has settled it.
    expect(await read()).toMatchObject({ state: "running" });
    expect(await end("succeeded")).toBe("ROLLOUT_PAUSED");
    await settle(db);
    expect(await read()).toMatchObject({ state: "paused", pausedBy: "success_threshold", counts: { succeeded: 2 } });
    expect(await end("succeeded")).toBe("ROLLOUT_PAUSED");
    const [entry] = (await listAudit(db, { subjectId: rolloutId, limit: 1 })).items;
    expect(entry).toMatchObject({
      ...{ actor: { kind: "system" }, action: "rollout.pause" },
      after: { state: "paused", pausedBy: "success_threshold", succeeded: 2, failed: 0 },
    });
    await settle(db);
    expect((await listAudit(db, { subjectId: rolloutId, limit: 1 })).items[0]?.id).toBe(entry?.id);
  });

  it("resumed, it counts anew", async () => {
    const { db } = database();
    const { end, read, step } = await aRunning(db, { successThreshold: 1 });
    await end("succeeded");
    await settle(db);
    await step("resume");
    await settle(db);
    expect(await read()).toMatchObject({ state: "running", pausedBy: null, counts: { succeeded: 1 } });
    expect(await end("succeeded")).toBe("ended");
    expect(await end("succeeded")).toBe("ROLLOUT_PAUSED");
  });

  it("a share of failures pauses it, but not before there are enough outcomes", async () => {
    const { db } = database();
    const { end, read } = await aRunning(db, { errorThreshold: { failureBasisPoints: 5_000, minOutcomes: 4 } });
    await end("failed");
    await end("failed");
    await end("succeeded");
    await settle(db);
    expect(await read()).toMatchObject({ state: "running" });
    await end("succeeded");
    await settle(db);
    expect(await read()).toMatchObject({
      state: "paused",
      pausedBy: "error_threshold",
      counts: { live: 0, failed: 2 },
    });
  });

  it("a smaller share does not", async () => {
    const { db } = database();
    const { end, read } = await aRunning(db, { errorThreshold: { failureBasisPoints: 5_000, minOutcomes: 3 } });
    for (const state of ["succeeded", "failed", "succeeded"] as const) await end(state);
    await settle(db);
    expect(await read()).toMatchObject({ state: "running", counts: { succeeded: 2, failed: 1 } });
  });

  it("an attempt that was cancelled is no outcome", async () => {
    const { db } = database();
    const { end, read } = await aRunning(db, { errorThreshold: { failureBasisPoints: 1, minOutcomes: 1 } });
    await end("cancelled");
    await settle(db);
    expect(await read()).toMatchObject({ state: "running", counts: { live: 0, succeeded: 0, failed: 0 } });
  });

  it("a threshold that is lowered below what was counted pauses it", async () => {
    const { db } = database();
    const { end, read, rolloutId } = await aRunning(db, { successThreshold: 9 });
    await end("succeeded");
    await updateRollout(db, { actor: SYSTEM, rolloutId, successThreshold: 1 });
    await settle(db);
    expect(await read()).toMatchObject({ state: "paused", pausedBy: "success_threshold" });
  });

  it("phases go on one by one, each on the outcomes since it began", async () => {
    const { db } = database();
    const phase = (percentageBasisPoints: number) => {
      return { percentageBasisPoints, minSucceeded: 2, minSuccessBasisPoints: 6_000 };
    };
    const phases = [phase(9_998), phase(9_999), phase(10_000)];
    const { end, read, rolloutId } = await aRunning(db, { phases });
    const at = async () => {
      await settle(db);
      const { phaseIndex, percentageBasisPoints } = await read();
      return [phaseIndex, percentageBasisPoints];
    };
    await end("succeeded");
    expect(await at()).toEqual([0, 9_998]);
    await end("failed");
    await end("failed");
    await end("succeeded");
    // Two of four: not good enough, until three of five are.
    expect(await at()).toEqual([0, 9_998]);
    await end("succeeded");
    expect(await at()).toEqual([1, 9_999]);
    await end("succeeded");
    expect(await at()).toEqual([1, 9_999]);
    await end("succeeded");
    expect(await at()).toEqual([2, 10_000]);
    await end("succeeded");
    await end("succeeded");
    expect(await at()).toEqual([2, 10_000]);
    const { items } = await listAudit(db, { subjectId: rolloutId });
    expect(items.map(({ action, after }) => [action, after?.["percentageBasisPoints"]]).slice(0, 2)).toEqual([
      ["rollout.advance", 10_000],
      ["rollout.advance", 9_999],
    ]);
  });

  it("in a later phase, its own terms given back leave it there", async () => {
    const { db } = database();
    const phase = { minSucceeded: 1, minSuccessBasisPoints: 0 };
    const phases = [9_999, 10_000].map((percentageBasisPoints) => ({ ...phase, percentageBasisPoints }));
    const { end, read, rolloutId } = await aRunning(db, { phases });
    await end("succeeded");
    await settle(db);
    const before = await read();
    expect(before).toMatchObject({ phaseIndex: 1, percentageBasisPoints: 10_000 });
    const change = { actor: SYSTEM, rolloutId, phases, percentageBasisPoints: 10_000 };
    expect(await updateRollout(db, change)).toEqual(before);
    await expect(updateRollout(db, { ...change, percentageBasisPoints: 9_999 })).rejects.toMatchObject({
      details: { field: "percentage" },
    });
    expect(await updateRollout(db, { ...change, maxTotal: 9 })).toMatchObject({
      ...{ phaseIndex: 1, percentageBasisPoints: 10_000, maxTotal: 9 },
    });
  });

  it("a device that is up to date counts for nothing", async () => {
    const { db } = database();
    const { checks, ask, read } = await aRunning(db, { successThreshold: 1 });
    const { tokenHash } = await ask();
    await checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
    await checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
    expect(await read()).toMatchObject({ counts: { live: 0, granted: 1, succeeded: 1, failed: 0 } });
  });

  it("an attempt that was opened by a version which counts nothing is ended like any other", async () => {
    const { db, query } = database();
    const { checks, ask, read, rolloutId } = await aRunning(db, { maxConcurrent: 5 });
    const { tokenHash, answer } = await ask();
    await query(`
      update rollout_counters set live = 0
      where rollout_id = (select id from rollouts where public_id = '${rolloutId}')
    `);
    const { id: attemptId } = (answer as UpdateAnswer).attempt;
    const report = { tokenHash, attemptId, report: { state: "failed" } } as const;
    expect(await checks.recordReport(report)).toMatchObject({ effect: "moved" });
    expect(await read()).toMatchObject({ counts: { live: 0, failed: 1 } });
  });

  it("what is settled by several at once happens once", async () => {
    const { db } = database();
    const { end, rolloutId } = await aRunning(db, { successThreshold: 1 });
    await end("succeeded");
    await Promise.all([settle(db), settle(db), settle(db)]);
    const { items } = await listAudit(db, { subjectId: rolloutId });
    expect(items.filter(({ action }) => action === "rollout.pause")).toHaveLength(1);
  });
});
