import {
  cancelUpgrade,
  createRollout,
  type ReportedState,
  resetUpgrade,
  takeRolloutStep,
  timeOutAttempts,
  type UpdateAnswer,
  updateDevice,
  updateProduct,
} from "@ota/domain";
import { expect, it } from "vitest";
import { describeOnDatabases } from "../support/databases.ts";
import { createFleet, startChecks } from "../support/fleet.ts";
import { runJob } from "../support/run-job.ts";

const actor = { kind: "system" } as const;

describeOnDatabases("an attempt's place, and the next attempt", (database) => {
  /** A rollout with one place for everybody, and devices that ask for it. */
  async function setUp() {
    const { db, query } = database();
    const fleet = await createFleet(db, { confirmBy: "report" });
    const { product } = fleet;
    const firmware = await fleet.release("2.0.0", { startRollout: false });
    const rollout = await createRollout(db, { actor, firmwareId: firmware.id, maxConcurrent: 1 });
    await takeRolloutStep(db, { actor, rolloutId: rollout.id, step: "start" });
    const checks = startChecks(db);
    const device = async () => {
      const { id: deviceId, tokenHash } = await fleet.device();
      const check = () => checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
      return {
        deviceId,
        check,
        offer: async () => (await check()) as UpdateAnswer,
        report: (attemptId: number, state: ReportedState) =>
          checks.recordReport({ tokenHash, attemptId, report: { state } }),
        block: (blocked: boolean) => updateDevice(db, { actor, deviceId, blocked }),
      };
    };
    /** Nobody says a word until every deadline has passed. */
    const silence = async () => {
      // Not now: rounded to the millisecond, that may be still to come.
      await query(
        "update upgrade_attempts set deadline_at = now() - interval '1 second' where deadline_at is not null",
      );
      await runJob(db, timeOutAttempts({ intervalMs: 1 }));
    };
    const later = () =>
      query("update upgrade_attempts set closed_at = closed_at - interval '1 day' where closed_at is not null");
    return { db, product, device, silence, later };
  }

  const full = { decision: "none", reason: "CAP_REACHED" };
  const blocked = { decision: "none", reason: "DEVICE_BLOCKED" };

  it("a blocked device that falls silent gives its place back", async () => {
    const { device, silence } = await setUp();
    const [one, other] = [await device(), await device()];
    await one.check();
    await one.block(true);
    expect(await one.check()).toMatchObject({ ...blocked, stopping: undefined });
    expect(await other.check()).toMatchObject(full);
    await silence();
    expect(await other.check()).toMatchObject({ decision: "update", how: "created" });
    await one.block(false);
    expect(await one.check()).toMatchObject(full);
  });

  it("a blocked device's upgrade that is cancelled gives its place back: at once, or when the device has answered", async () => {
    const { db, device } = await setUp();
    const [one, two, other] = [await device(), await device(), await device()];
    const first = await one.offer();
    await one.block(true);
    await cancelUpgrade(db, { actor, upgradeId: first.upgradeId });
    const second = await two.offer();
    expect(second).toMatchObject({ decision: "update" });

    await two.report(second.attempt.id, "downloading");
    await two.block(true);
    await cancelUpgrade(db, { actor, upgradeId: second.upgradeId });
    expect(await two.check()).toMatchObject({ ...blocked, stopping: { id: second.attempt.id } });
    expect(await other.check()).toMatchObject(full);
    await two.report(second.attempt.id, "cancelled");
    expect(await two.check()).toMatchObject({ ...blocked, stopping: undefined });
    expect(await other.check()).toMatchObject({ decision: "update" });
  });

  it.each(["failed", "cancelled", "succeeded"] as const)("a device that has %s gives its place back", async (state) => {
    const { device } = await setUp();
    const [one, other] = [await device(), await device()];
    const { attempt } = await one.offer();
    expect(await other.check()).toMatchObject(full);
    await one.report(attempt.id, state);
    await one.report(attempt.id, state);
    expect(await other.check()).toMatchObject({ decision: "update" });
    expect(await (await device()).check()).toMatchObject(full);
  });

  it("a device that was silent is told when its next attempt is due, has three of them, and more after a reset", async () => {
    const { db, product, device, silence, later } = await setUp();
    await updateProduct(db, { actor, product, pollIntervalSeconds: 86_000 });
    const one = await device();
    let upgradeId = "";
    for (const number of [1, 2, 3]) {
      const offer = await one.offer();
      expect(offer.attempt).toMatchObject({ number, state: "offered" });
      upgradeId = offer.upgradeId;
      await silence();
      const answer = await one.check();
      expect(answer).toMatchObject({ decision: "none", reason: number < 3 ? "BACKOFF" : "ATTEMPTS_EXHAUSTED" });
      // The slot of a device that asks once a day may come first, but nobody is told to come later than is due.
      if (number < 3) expect(answer.pollAfterSeconds).toBeLessThanOrEqual(600 * 2 ** (number - 1));
      await later();
    }
    expect(await one.check()).toMatchObject({ reason: "ATTEMPTS_EXHAUSTED" });
    await resetUpgrade(db, { actor, upgradeId });
    expect(await one.check()).toMatchObject({ how: "created", upgradeId, attempt: { number: 4 } });
  });

  it("a device that is moved out of a rollout and back has all its attempts left", async () => {
    const { db, device, later } = await setUp();
    const one = await device();
    const move = (channel: string) => updateDevice(db, { actor, deviceId: one.deviceId, channel });
    for (const number of [1, 2, 3, 4]) {
      expect((await one.offer()).attempt).toMatchObject({ number, state: "offered" });
      await move("elsewhere");
      expect(await one.check()).toMatchObject({ decision: "none" });
      await move("stable");
      expect(await one.check()).toMatchObject({ decision: "none", reason: "BACKOFF" });
      await later();
    }
    for (const number of [5, 6, 7]) {
      const { attempt } = await one.offer();
      expect(attempt).toMatchObject({ number });
      await one.report(attempt.id, "failed");
      await later();
    }
    expect(await one.check()).toMatchObject({ reason: "ATTEMPTS_EXHAUSTED" });
  });

  it("one that had begun when it was moved has used up an attempt", async () => {
    const { db, product, device, later } = await setUp();
    await updateProduct(db, { actor, product, maxAttempts: 1 });
    const one = await device();
    const { attempt } = await one.offer();
    await one.report(attempt.id, "downloading");
    await updateDevice(db, { actor, deviceId: one.deviceId, channel: "elsewhere" });
    expect(await one.check()).toMatchObject({ stopping: { id: attempt.id } });
    await one.report(attempt.id, "cancelled");
    await updateDevice(db, { actor, deviceId: one.deviceId, channel: "stable" });
    await later();
    expect(await one.check()).toMatchObject({ reason: "ATTEMPTS_EXHAUSTED" });
  });

  it("the product's limits are taken up by the next check", async () => {
    const { db, product, device, silence } = await setUp();
    await updateProduct(db, { actor, product, maxAttempts: 2, backoffSeconds: 0 });
    const one = await device();
    for (const number of [1, 2]) {
      expect(await one.check()).toMatchObject({ attempt: { number } });
      await silence();
    }
    expect(await one.check()).toMatchObject({ reason: "ATTEMPTS_EXHAUSTED" });
    await updateProduct(db, { actor, product, maxAttempts: 3 });
    expect(await one.check()).toMatchObject({ attempt: { number: 3 } });
  });
});
