import {
  cancelUpgrade,
  createRollout,
  explainDevice,
  registerFirmware,
  releaseFirmware,
  takeRolloutStep,
  type UpdateAnswer,
  updateDevice,
  updateRollout,
} from "@ota/domain";
import { expect, it } from "vitest";
import { describeOnDatabases } from "./support/databases.ts";
import { artifactOf, createFleet, startChecks } from "./support/fleet.ts";

const actor = { kind: "system" } as const;

describeOnDatabases("explainDevice", (database) => {
  it("lists every candidate, best first, with the reason why it is not offered, and what a check would answer", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    const old = await fleet.release("1.0.0");
    const next = await fleet.release("2.0.0");
    const beta = await fleet.release("3.0.0", { channel: "beta" });
    const other = await fleet.release("2.5.0", { hardwareRevisions: ["Z"] });
    const device = await fleet.device();
    const checks = startChecks(db);
    const answer = await checks.checkForUpdate({ tokenHash: device.tokenHash, reported: { version: "1.0.0" } });

    const explanation = await explainDevice(db, { deviceId: device.id });
    expect(explanation.device).toMatchObject({ serial: device.serial, runs: { version: "1.0.0" }, channel: "stable" });
    expect(explanation.decision).toEqual({ decision: "update", firmwareId: next.id, version: "2.0.0" });
    const { upgradeId } = answer as UpdateAnswer;
    expect(explanation.live).toMatchObject({ upgradeId, state: "offered", version: "2.0.0" });
    expect(explanation.candidates.map((candidate) => candidate.upgradeId)).toEqual([
      ...[undefined, undefined, upgradeId, undefined],
    ]);
    expect(answer).toMatchObject({ decision: "update", firmware: { id: next.id } });
    expect(explanation.candidates.map(({ target, reason }) => [target.firmwareId, reason])).toEqual([
      [beta.id, "NOT_IN_ROLLOUT"],
      [other.id, "HARDWARE_MISMATCH"],
      [next.id, undefined],
      [old.id, "UP_TO_DATE"],
    ]);
    expect(explanation.candidates[2]).toMatchObject({ attempts: 1, channel: "stable", rolloutState: "running" });
  });

  it("names the step that a target needs", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    const step = await fleet.release("1.5.0", { startRollout: false });
    const target = await fleet.release("2.0.0", { requiresVersion: "1.5.0" });
    const device = await fleet.device();
    await startChecks(db).checkForUpdate({ tokenHash: device.tokenHash, reported: { version: "1.0.0" } });
    const { candidates } = await explainDevice(db, { deviceId: device.id });
    expect(candidates).toMatchObject([{ target: { firmwareId: target.id }, offers: { firmwareId: step.id } }]);
  });

  it("says what an operator has to do next, from a product without firmware to an update", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    const { id: deviceId, tokenHash } = await fleet.device();
    const advice = async () => (await explainDevice(db, { deviceId })).advice;
    expect(await advice()).toMatch(/has no firmware: upload/);
    const artifact = artifactOf("2.0.0");
    const { id: firmwareId } = await registerFirmware(db, {
      actor,
      product: fleet.product,
      version: "2.0.0",
      artifact,
    });
    expect(await advice()).toMatch(/is a draft: release it/);
    await releaseFirmware(db, { actor, firmwareId });
    expect(await advice()).toMatch(/is released, but no open rollout/);
    const { id: rolloutId } = await createRollout(db, { actor, firmwareId, channel: "beta" });
    expect(await advice()).toMatch(/rollout of a released firmware is a draft: start it/);
    await takeRolloutStep(db, { actor, rolloutId, step: "start" });
    expect(await advice()).toMatch(/excludedBy says which/);
    await updateDevice(db, { actor, deviceId, channel: "beta" });
    expect(await advice()).toBeUndefined();
    await startChecks(db).checkForUpdate({ tokenHash, reported: { version: "2.0.0" } });
    expect(await advice()).toMatch(/^Nothing: it runs/);
    await takeRolloutStep(db, { actor, rolloutId, step: "stop" });
    expect(await advice()).toMatch(/is released, but no open rollout/);
  });

  it("tells a missing step apart from a missing rollout", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    await fleet.release("2.0.0", { requiresVersion: "1.5.0" });
    const { id: deviceId, tokenHash } = await fleet.device();
    await startChecks(db).checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
    const { decision, advice } = await explainDevice(db, { deviceId });
    expect(decision).toEqual({ decision: "none", reason: "NO_FIRMWARE" });
    expect(advice).toMatch(/release that step/);
  });

  it("gives no reason against an open attempt, although it is the last one allowed", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    await fleet.release("2.0.0");
    const { id: deviceId, tokenHash } = await fleet.device();
    const checks = startChecks(db);
    for (let failures = 0; failures < 2; failures += 1) {
      const { attempt } = (await checks.checkForUpdate({ tokenHash })) as UpdateAnswer;
      await checks.recordReport({ tokenHash, attemptId: attempt.id, report: { state: "failed" } });
      const waiting = { decision: { decision: "none", reason: "BACKOFF" }, candidates: [{ reason: "BACKOFF" }] };
      await expect(explainDevice(db, { deviceId })).resolves.toMatchObject(waiting);
      const later = new Date(Date.now() + 3_600_000);
      const due = { decision: { decision: "update" }, candidates: [{ reason: undefined }] };
      await expect(explainDevice(db, { deviceId, now: later })).resolves.toMatchObject(due);
      await database().query(
        `update upgrade_attempts set closed_at = now() - interval '1 hour' where id = ${attempt.id}`,
      );
    }
    await checks.checkForUpdate({ tokenHash });
    await expect(explainDevice(db, { deviceId })).resolves.toMatchObject({
      decision: { decision: "update" },
      live: { state: "offered" },
      candidates: [{ reason: undefined, attempts: 3 }],
    });
  });

  it("says which of a rollout's terms leaves the device out, and from which share on it would be in", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    const { id: firmwareId } = await fleet.release("2.0.0", { startRollout: false });
    const { id: deviceId } = await fleet.device();
    const attributeFilter = { attribute: "site", eq: "Berlin" };
    const terms = { channel: "beta", groups: ["pilot"], attributeFilter, percentageBasisPoints: 0 };
    const { id: rolloutId } = await createRollout(db, { actor, firmwareId, ...terms });
    await takeRolloutStep(db, { actor, rolloutId, step: "start" });
    const candidate = async () => (await explainDevice(db, { deviceId })).candidates[0];
    expect(await candidate()).toMatchObject({ reason: "NOT_IN_ROLLOUT", excludedBy: "channel" });
    await updateDevice(db, { actor, deviceId, channel: "beta" });
    expect(await candidate()).toMatchObject({ reason: "NOT_IN_ROLLOUT", excludedBy: "groups" });
    await updateDevice(db, { actor, deviceId, groups: ["pilot"] });
    expect(await candidate()).toMatchObject({ reason: "NOT_IN_ROLLOUT", excludedBy: "attributeFilter" });
    await updateDevice(db, { actor, deviceId, attributes: { site: "Berlin" } });
    expect(await candidate()).toMatchObject({ reason: "NOT_IN_ROLLOUT", excludedBy: "percentage" });
    const bucket = (await candidate())?.bucket ?? 0;
    await updateRollout(db, { actor, rolloutId, percentageBasisPoints: bucket });
    expect(await candidate()).toMatchObject({ reason: "NOT_IN_ROLLOUT", excludedBy: "percentage", bucket });
    await updateRollout(db, { actor, rolloutId, percentageBasisPoints: bucket + 1 });
    expect(await candidate()).toMatchObject({ reason: undefined, excludedBy: undefined, bucket });
  });

  it("says first that a device is being asked to stop, whatever keeps it from the next offer", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    const { rollouts } = await fleet.release("2.0.0");
    const rolloutId = rollouts[0]?.id as string;
    const { id: deviceId, tokenHash } = await fleet.device();
    const checks = startChecks(db);
    const { attempt, upgradeId } = (await checks.checkForUpdate({ tokenHash })) as UpdateAnswer;
    const report = (state: "downloading" | "cancelled") =>
      checks.recordReport({ tokenHash, attemptId: attempt.id, report: { state } });
    await report("downloading");
    await cancelUpgrade(db, { actor, upgradeId });
    await takeRolloutStep(db, { actor, rolloutId, step: "pause" });
    const advice = async () => (await explainDevice(db, { deviceId })).advice;
    expect(await advice()).toMatch(/^The device is asked to stop .* Then: Resume the rollout/);
    await report("cancelled");
    expect(await advice()).toMatch(/^Resume the rollout/);
    await takeRolloutStep(db, { actor, rolloutId, step: "resume" });
    expect(await advice()).toMatch(/^An operator has cancelled the upgrade: reset it/);
  });

  it("counts the attempts on what the device runs by now, too", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    await fleet.release("2.0.0");
    const { id: deviceId, tokenHash } = await fleet.device();
    const checks = startChecks(db);
    const { upgradeId } = (await checks.checkForUpdate({ tokenHash })) as UpdateAnswer;
    await checks.checkForUpdate({ tokenHash, reported: { version: "2.0.0" } });
    const { candidates } = await explainDevice(db, { deviceId });
    expect(candidates).toMatchObject([{ reason: "UP_TO_DATE", upgradeId, attempts: 1 }]);
  });

  it("says that a rollout is kept from the device by one that ranks higher", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    const newest = await fleet.release("2.0.0");
    await fleet.release("1.0.0", { allowDowngrade: true });
    const { id: deviceId, tokenHash } = await fleet.device();
    await startChecks(db).checkForUpdate({ tokenHash, reported: { version: "2.0.0" } });
    expect(await explainDevice(db, { deviceId })).toMatchObject({
      decision: { decision: "none", reason: "UP_TO_DATE" },
      advice: expect.stringMatching(/would take the device back/),
      candidates: [{ reason: "UP_TO_DATE" }, { reason: "OUTRANKED" }],
    });
    await takeRolloutStep(db, { actor, rolloutId: newest.rollouts[0]?.id as string, step: "finish" });
    expect(await explainDevice(db, { deviceId })).toMatchObject({ decision: { decision: "update", version: "1.0.0" } });
  });

  it("changes nothing", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    await fleet.release("1.0.0");
    const device = await fleet.device();
    const { decision } = await explainDevice(db, { deviceId: device.id });
    expect(decision).toMatchObject({ decision: "update" });
    const counted = `select count(*)::int as n from upgrades u join devices d on d.id = u.device_id where d.public_id = '${device.id}'`;
    expect(await database().query(counted)).toEqual([{ n: 0 }]);
  });

  it.each(["not-an-id", "00000000-0000-7000-8000-000000000000", "a\u0000"])(
    "refuses %j as nobody's",
    async (deviceId) => {
      await expect(explainDevice(database().db, { deviceId })).rejects.toMatchObject({ code: "NOT_FOUND" });
    },
  );
});
