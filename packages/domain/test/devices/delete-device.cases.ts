import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import {
  createGatewayToken,
  deleteDevice,
  getDevice,
  hashToken,
  listAudit,
  listDevices,
  registerDevice,
  schema,
} from "../../src/index.ts";
import { anAttempt } from "../support/attempts.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { startChecks } from "../support/fleet.ts";
import { aDevice, aProduct, aReleasedFirmware, SYSTEM } from "../support/records.ts";

export const deleteDeviceCases = casesOn("the deletion of a device", (database) => {
  async function setUp() {
    const { db } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "2.0.0" });
    const { device, token } = await aDevice(db, product);
    const [rollout] = await db
      .select({ id: schema.rollouts.id })
      .from(schema.rollouts)
      .innerJoin(schema.firmware, eq(schema.firmware.id, schema.rollouts.firmwareId))
      .where(eq(schema.firmware.publicId, firmware.id));
    if (rollout === undefined) throw new Error("The firmware has no rollout.");
    const remove = (options: object = {}) => deleteDevice(db, { actor: SYSTEM, deviceId: device.id, ...options });
    return { db, product, firmware, device, token, tokenHash: hashToken(token), rolloutId: rollout.id, remove };
  }

  const rowsOf = async (serial: string) => {
    const [row] = await database().query(`
      select
        (select count(*)::int from devices where serial = '${serial}') as devices,
        (select count(*)::int from upgrades) as upgrades, (select count(*)::int from upgrade_attempts) as attempts,
        (select count(*)::int from attempt_events) as events, (select count(*)::int from rollout_devices) as allowed
    `);
    return row;
  };

  it("takes its upgrades, attempts, events and allow-list entries with it, and nobody else's; the audit log stays", async () => {
    const { db, product, device, tokenHash, rolloutId, remove } = await setUp();
    const checks = startChecks(db);
    const { device: other, token } = await aDevice(db, product);
    await checks.checkForUpdate({ tokenHash: hashToken(token), reported: { version: "1.0.0" } });
    const before = await rowsOf(device.serial);
    const answer = await checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
    if (answer.decision !== "update") throw new Error(answer.reason);
    await checks.recordReport({ tokenHash, attemptId: answer.attempt.id, report: { state: "failed" } });
    const [row] = await db.select().from(schema.devices).where(eq(schema.devices.publicId, device.id));
    await db.insert(schema.rolloutDevices).values({ rolloutId, deviceId: row?.id ?? 0n });
    expect(await rowsOf(device.serial)).not.toEqual(before);

    await remove();
    expect(await rowsOf(device.serial)).toEqual({ ...before, devices: 0 });
    expect(await codeOf(checks.checkForUpdate({ tokenHash }))).toBe("DEVICE_TOKEN_INVALID");
    expect(await codeOf(remove())).toBe("NOT_FOUND");
    expect(await getDevice(db, { deviceId: other.id })).toMatchObject({ serial: other.serial });
    const { items } = await listAudit(db, { subjectId: device.id });
    expect(items.map(({ action }) => action)).toEqual(["device.delete", "device.register"]);
    expect(items[0]?.before).toMatchObject({ product, serial: device.serial, reportedVersion: "1.0.0" });
    await checks.close();
  });

  it("is refused while an attempt is open, unless it is to end by it: then its place is free, and no outcome counts", async () => {
    const { db, firmware, device, rolloutId, remove } = await setUp();
    await db
      .insert(schema.rolloutCounters)
      .values({ rolloutId, revision: 1n, live: 5, granted: 7, succeeded: 1, failed: 1 });
    await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state: "timed_out" });
    const { attemptId } = await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state: "downloading" });
    const counters = async () =>
      (await db.select().from(schema.rolloutCounters).where(eq(schema.rolloutCounters.rolloutId, rolloutId)))[0];
    const refused = await remove().catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "INVALID_STATE", details: { attemptId, state: "downloading" } });
    expect(await counters()).toMatchObject({ live: 5 });
    await remove({ endsAttempt: true });
    expect(await counters()).toMatchObject({ live: 4, granted: 7, succeeded: 1, failed: 1 });
  });

  it("of a device that failed gives back no place that it does not hold", async () => {
    const { db, firmware, device, rolloutId, remove } = await setUp();
    await db.insert(schema.rolloutCounters).values({ rolloutId, revision: 1n, live: 5, granted: 7 });
    await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state: "failed" });
    await remove();
    const [row] = await db.select().from(schema.rolloutCounters).where(eq(schema.rolloutCounters.rolloutId, rolloutId));
    expect(row).toMatchObject({ live: 5, failed: 0 });
  });

  it("among checks and reports of the device ends in 401 for them, and in nothing worse", async () => {
    const { db, product, tokenHash, remove } = await setUp();
    const checks = startChecks(db);
    const versions = ["1.0.0", "1.0.1", "2.0.0"];
    const answer = await checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
    const attemptId = answer.decision === "update" ? answer.attempt.id : 0;
    const calls = inParallel(60, async (n) => {
      if (n === 20) return remove({ endsAttempt: true });
      const reported = { version: versions[n % 3] ?? "", attributes: { n } };
      if (n % 2 === 0) return checks.checkForUpdate({ tokenHash, reported });
      return checks.recordReport({ tokenHash, attemptId, report: { state: "downloading" } });
    });
    const { DEVICE_TOKEN_INVALID = 0, ATTEMPT_CLOSED = 0, ...others } = await tally(calls);
    expect(Object.keys(others).filter((code) => code !== "no error" && code !== "SERVICE_BUSY")).toEqual([]);
    expect(DEVICE_TOKEN_INVALID + ATTEMPT_CLOSED).toBeGreaterThan(0);
    await checks.close();
    expect(await codeOf(checks.checkForUpdate({ tokenHash }))).toBe("DEVICE_TOKEN_INVALID");
    expect((await listDevices(db, { product })).items).toEqual([]);
  });

  it("lets its serial be registered again, and a gateway do it", async () => {
    const { db, product, device, remove } = await setUp();
    await remove();
    const { token } = await createGatewayToken(db, { actor: SYSTEM, product, name: "gateway" });
    const { serial } = device;
    const answer = await startChecks(db).checkForUpdate({ tokenHash: hashToken(token), serial });
    expect(answer.device.id).not.toBe(device.id);
    await deleteDevice(db, { actor: SYSTEM, deviceId: answer.device.id, endsAttempt: true });
    expect((await registerDevice(db, { actor: SYSTEM, product, serial })).device.serial).toBe(serial);
  });
});
