import {
  type CheckAnswer,
  getDevice,
  getUpgrade,
  hashToken,
  listUpgrades,
  rotateDeviceToken,
  type UpdateAnswer,
  updateDevice,
  withdrawFirmware,
} from "@ota/domain";
import { expect, it } from "vitest";
import { describeOnDatabases } from "../support/databases.ts";
import { artifactOf, createFleet, startChecks } from "../support/fleet.ts";

const actor = { kind: "system" } as const;

describeOnDatabases("checkForUpdate", (database) => {
  async function setUp(options: Parameters<typeof createFleet>[1] = {}) {
    const { db } = database();
    const fleet = await createFleet(db, options);
    const device = await fleet.device();
    const { tokenHash } = device;
    const checks = startChecks(db);
    const check = (version?: string) => {
      return checks.checkForUpdate({ tokenHash, reported: version === undefined ? {} : { version } });
    };
    const report = (answer: CheckAnswer, state: "downloading" | "failed" | "cancelled" | "succeeded" | "confirmed") => {
      return checks.recordReport({ tokenHash, attemptId: (answer as UpdateAnswer).attempt.id, report: { state } });
    };
    /** The states of the device's attempts, oldest first. */
    const attempts = async () => {
      const rows = await database().query(`
        select f.version, a.n, a.state from upgrade_attempts a
          join firmware f on f.id = a.firmware_id join devices d on d.id = a.device_id
        where d.public_id = '${device.id}' order by a.id
      `);
      return rows.map(({ version, n, state }) => `${version} #${n} ${state}`);
    };
    /** Lets time pass for what is closed. */
    const later = () =>
      database().query(
        "update upgrade_attempts set closed_at = closed_at - interval '1 hour' where closed_at is not null",
      );
    return { db, fleet, device, checks, check, report, attempts, later };
  }

  it("creates the record at the first check and finds it at the next", async () => {
    const { fleet, device, check, checks } = await setUp();
    const firmware = await fleet.release("1.0.0");
    const first = await check();
    expect(first).toEqual({
      decision: "update",
      how: "created",
      device: { id: device.id, serial: device.serial, product: fleet.product },
      attempt: { id: expect.any(Number), number: 1, state: "offered" },
      upgradeId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      firmware: { id: firmware.id, version: "1.0.0", ...artifactOf("1.0.0"), signature: null },
      pollAfterSeconds: expect.any(Number),
      installedAttemptId: undefined,
      attributesWanted: true,
    });
    expect(await check()).toMatchObject({ ...first, how: "found", pollAfterSeconds: expect.any(Number) });
    expect(checks.events.map(({ kind }) => kind)).toEqual(["lock", "created", "decided", "decided"]);
  });

  it("answers with a reason when there is nothing", async () => {
    const { fleet, device, check } = await setUp();
    expect(await check("1.0.0")).toEqual({
      decision: "none",
      reason: "NO_FIRMWARE",
      stopping: undefined,
      device: { id: device.id, serial: device.serial, product: fleet.product },
      pollAfterSeconds: expect.any(Number),
      installedAttemptId: undefined,
      attributesWanted: true,
    });
  });

  it("refuses a token that is nobody's, and one rotated without an overlap at once", async () => {
    const { db, checks, device, check } = await setUp();
    const refusal = expect.objectContaining({ code: "DEVICE_TOKEN_INVALID" });
    await expect(checks.checkForUpdate({ tokenHash: hashToken("nobody's") })).rejects.toEqual(refusal);
    await check();
    await rotateDeviceToken(db, { actor, deviceId: device.id, overlapSeconds: 0 });
    await expect(check()).rejects.toEqual(refusal);
  });

  it("keeps what the device reports, and what it leaves out as it was", async () => {
    const { db, checks, device } = await setUp();
    const { tokenHash } = device;
    await checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0", hardwareRevision: "B" } });
    await checks.checkForUpdate({ tokenHash });
    const facts = { reportedVersion: "1.0.0", hardwareRevision: "B" };
    expect(await getDevice(db, { deviceId: device.id })).toMatchObject(facts);
    await checks.checkForUpdate({ tokenHash, reported: { version: "1.1.0" } });
    expect(await getDevice(db, { deviceId: device.id })).toMatchObject({ ...facts, reportedVersion: "1.1.0" });
  });

  it("writes only what it was told: what others learnt meanwhile stays", async () => {
    const { db, device, checks } = await setUp();
    const { tokenHash } = device;
    await database().query(`update devices set confirmed_version = '0.9.0' where public_id = '${device.id}'`);
    await Promise.all([
      checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } }),
      checks.checkForUpdate({ tokenHash, reported: { hardwareRevision: "B" } }),
    ]);
    expect(await getDevice(db, { deviceId: device.id })).toMatchObject({
      ...{ reportedVersion: "1.0.0", hardwareRevision: "B", confirmedVersion: "0.9.0" },
    });
  });

  it.each(["a\u0000b", "half \ud800", "x".repeat(10_000), "", "1.0.0\n"])(
    "takes any text as a version, and never fails on it: %j",
    async (version) => {
      const { fleet, check } = await setUp();
      await fleet.release("1.0.0");
      await expect(check(version)).resolves.toMatchObject({ decision: "none" });
      await expect(check(version)).resolves.toMatchObject({ decision: "none" });
    },
  );

  it("closes the attempt when the device reports its version, whatever it said before", async () => {
    const { db, fleet, device, check, attempts } = await setUp({ confirmBy: "version" });
    await fleet.release("2.0.0");
    const offer = (await check("1.0.0")) as UpdateAnswer;
    expect(await check("2.0.0")).toMatchObject({ decision: "none", reason: "UP_TO_DATE" });
    expect(await attempts()).toEqual(["2.0.0 #1 succeeded"]);
    expect(await getDevice(db, { deviceId: device.id })).toMatchObject({
      reportedVersion: "2.0.0",
      confirmedVersion: "2.0.0",
    });
    const { attempts: history } = await getUpgrade(db, { upgradeId: offer.upgradeId });
    expect(history[0]?.events.map(({ toState }) => toState)).toEqual(["offered", "succeeded"]);
  });

  it("offers a device that fell back the same record again, once some time has passed", async () => {
    const { fleet, check, attempts, later } = await setUp();
    await fleet.release("2.0.0");
    const first = (await check("1.0.0")) as UpdateAnswer;
    await check("2.0.0");
    expect(await check("1.0.0")).toMatchObject({ decision: "none", reason: "BACKOFF" });
    await later();
    expect(await check("1.0.0")).toMatchObject({
      how: "created",
      upgradeId: first.upgradeId,
      attempt: { number: 2, state: "offered" },
    });
    expect(await attempts()).toEqual(["2.0.0 #1 succeeded", "2.0.0 #2 offered"]);
  });

  it("opens the next attempt on a record whose last one failed, and stops after three", async () => {
    const { db, fleet, device, check, report, attempts, later } = await setUp();
    await fleet.release("2.0.0");
    for (const number of [1, 2, 3]) {
      const answer = await check();
      expect(answer).toMatchObject({ how: "created", attempt: { number } });
      await report(answer, "failed");
      expect(await check()).toMatchObject({ reason: number < 3 ? "BACKOFF" : "ATTEMPTS_EXHAUSTED" });
      await later();
    }
    expect(await check()).toMatchObject({ reason: "ATTEMPTS_EXHAUSTED" });
    expect(await attempts()).toEqual(["2.0.0 #1 failed", "2.0.0 #2 failed", "2.0.0 #3 failed"]);
    expect((await listUpgrades(db, { deviceId: device.id })).items).toHaveLength(1);
  });

  it("a device whose success is its word needs no version, and is not offered the same again", async () => {
    const { db, fleet, device, check, report } = await setUp({ confirmBy: "report" });
    await fleet.release("2.0.0");
    await report(await check("1.0.0"), "succeeded");
    expect(await check()).toMatchObject({ decision: "none", reason: "UP_TO_DATE" });
    expect(await getDevice(db, { deviceId: device.id })).toMatchObject({
      reportedVersion: null,
      confirmedVersion: "2.0.0",
    });
  });

  it("leads a device over a step to its target", async () => {
    const { fleet, check, attempts } = await setUp();
    await fleet.release("1.5.0", { startRollout: false });
    await fleet.release("2.0.0", { requiresVersion: "1.5.0" });
    expect(await check("1.0.0")).toMatchObject({ firmware: { version: "1.5.0" } });
    expect(await check("1.5.0")).toMatchObject({ how: "created", firmware: { version: "2.0.0" } });
    expect(await check("2.0.0")).toMatchObject({ reason: "UP_TO_DATE" });
    expect(await attempts()).toEqual(["1.5.0 #1 succeeded", "2.0.0 #1 succeeded"]);
  });

  it("supersedes an offer that has not begun when a newer firmware is released", async () => {
    const { fleet, check, attempts } = await setUp();
    await fleet.release("1.0.0");
    await check();
    await fleet.release("2.0.0");
    expect(await check()).toMatchObject({ how: "created", firmware: { version: "2.0.0" } });
    expect(await attempts()).toEqual(["1.0.0 #1 superseded", "2.0.0 #1 offered"]);
  });

  it("tells its observer each move of an attempt once: by a newer offer, by a report, by the version", async () => {
    const { fleet, check, checks, report } = await setUp({ confirmBy: "version" });
    await fleet.release("1.0.0");
    await check();
    await fleet.release("2.0.0");
    const offer = await check();
    await report(offer, "downloading");
    await report(offer, "downloading");
    await check("2.0.0");
    const moves = checks.events.flatMap((event) => (event.kind === "moved" ? [event.to] : []));
    expect(moves).toEqual(["superseded", "downloading", "succeeded"]);
  });

  it("lets a device that has begun finish when a newer firmware is released", async () => {
    const { fleet, check, report, attempts } = await setUp();
    await fleet.release("1.0.0");
    await report(await check(), "downloading");
    await fleet.release("2.0.0");
    expect(await check()).toMatchObject({ how: "found", firmware: { version: "1.0.0" } });
    expect(await attempts()).toEqual(["1.0.0 #1 downloading"]);
  });

  it("stops offering a withdrawn firmware at the next check of any process", async () => {
    const { db, fleet, device, check, attempts } = await setUp();
    const firmware = await fleet.release("1.0.0");
    const otherProcess = startChecks(db);
    await check();
    await otherProcess.checkForUpdate({ tokenHash: device.tokenHash });
    await withdrawFirmware(db, { actor, firmwareId: firmware.id });
    expect(await otherProcess.checkForUpdate({ tokenHash: device.tokenHash })).toMatchObject({ reason: "NO_FIRMWARE" });
    expect(await check()).toMatchObject({ reason: "NO_FIRMWARE" });
    expect(await attempts()).toEqual(["1.0.0 #1 cancelled"]);
  });

  it("asks a device that is fetching a withdrawn firmware to stop, until it has answered", async () => {
    const { db, fleet, check, report, attempts } = await setUp();
    const firmware = await fleet.release("1.0.0");
    const offer = (await check()) as UpdateAnswer;
    await report(offer, "downloading");
    await withdrawFirmware(db, { actor, firmwareId: firmware.id });
    const stop = { decision: "none", reason: "NO_FIRMWARE", stopping: { id: offer.attempt.id, number: 1 } };
    expect(await check()).toMatchObject(stop);
    expect(await check()).toMatchObject(stop);
    expect(await attempts()).toEqual(["1.0.0 #1 cancelling"]);
    await report(offer, "cancelled");
    expect(await check()).toMatchObject({ reason: "NO_FIRMWARE", stopping: undefined });
    expect(await attempts()).toEqual(["1.0.0 #1 cancelled"]);
  });

  it("waits for consent where the rollout asks for it", async () => {
    const { fleet, check, report } = await setUp();
    const firmware = await fleet.release("1.0.0");
    await database().query(`
      update rollouts set requires_confirmation = true
      where firmware_id = (select id from firmware where public_id = '${firmware.id}')
    `);
    const offer = await check();
    expect(offer).toMatchObject({ attempt: { state: "awaiting_confirmation" } });
    await report(offer, "confirmed");
    expect(await check()).toMatchObject({ how: "found", attempt: { state: "offered" } });
  });

  it("blocks a device from the next check on", async () => {
    const { db, fleet, device, check } = await setUp();
    await fleet.release("1.0.0");
    await check();
    await updateDevice(db, { actor, deviceId: device.id, blocked: true });
    expect(await check()).toMatchObject({ decision: "none", reason: "DEVICE_BLOCKED" });
    await updateDevice(db, { actor, deviceId: device.id, blocked: false });
    expect(await check()).toMatchObject({ decision: "update", how: "found" });
  });

  it("writes when a device was seen last, also when it got nothing, and never an older time over a newer", async () => {
    const { db, device, check, checks } = await setUp();
    const lastSeen = async () => (await getDevice(db, { deviceId: device.id })).lastSeenAt;
    await check();
    expect(await lastSeen()).toBeNull();
    await checks.close();
    expect(Math.abs(Date.now() - ((await lastSeen())?.getTime() ?? 0))).toBeLessThan(60_000);
    const future = new Date("2099-01-01T00:00:00Z");
    await database().query(
      `update devices set last_seen_at = '${future.toISOString()}' where public_id = '${device.id}'`,
    );
    await check();
    await checks.close();
    expect(await lastSeen()).toEqual(future);
  });
});
