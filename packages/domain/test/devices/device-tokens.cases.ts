import { eq, sql } from "drizzle-orm";
import { expect, it } from "vitest";
import {
  type Database,
  findArtifactForDevice,
  hashToken,
  listAudit,
  revokeDeviceTokens,
  rotateDeviceToken,
  schema,
} from "../../src/index.ts";
import { anAttempt } from "../support/attempts.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf } from "../support/errors.ts";
import { startChecks } from "../support/fleet.ts";
import { aDevice, aProduct, aReleasedFirmware, SYSTEM } from "../support/records.ts";

const NO_DEVICE = "00000000-0000-7000-8000-000000000000";

export const deviceTokenCases = casesOn("tokens of devices", (database) => {
  /** A device, and whether it is known by a token: at its check, its report and its download alike. */
  async function setUp() {
    const { db } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const { device, token } = await aDevice(db, product);
    const { attemptId } = await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state: "offered" });
    const checks = startChecks(db);
    const known = async (text: string) => {
      const tokenHash = hashToken(text);
      const codes = new Set([
        await codeOf(checks.checkForUpdate({ tokenHash })),
        await codeOf(checks.recordReport({ tokenHash, attemptId, report: { state: "downloading" } })),
        await codeOf(findArtifactForDevice(db, { tokenHash, firmwareId: firmware.id })),
      ]);
      expect(codes.size).toBe(1);
      return [...codes][0] === "no error";
    };
    const rotate = (overlapSeconds?: number) =>
      rotateDeviceToken(db, { actor: SYSTEM, deviceId: device.id, overlapSeconds });
    const revoke = (which: "previous" | "newest" | "all") =>
      revokeDeviceTokens(db, { actor: SYSTEM, deviceId: device.id, which });
    return { db, device, token, known, rotate, revoke };
  }

  /** As if the overlap had begun so long ago that it is over now. */
  async function endOverlap(db: Database, deviceId: string) {
    await db
      .update(schema.devices)
      .set({ previousTokenValidUntil: sql`now() - interval '1 millisecond'` })
      .where(eq(schema.devices.publicId, deviceId));
  }

  it("the old token works beside the new one until its time is up, and then no more", async () => {
    const { db, device, token, known, rotate } = await setUp();
    const rotated = await rotate();
    const until = rotated.device.previousTokenValidUntil?.getTime() ?? 0;
    expect(Math.abs(until - Date.now() - 86_400_000)).toBeLessThan(600_000);
    expect(rotated.token).not.toBe(token);
    expect([await known(token), await known(rotated.token)]).toEqual([true, true]);
    await endOverlap(db, device.id);
    expect([await known(token), await known(rotated.token)]).toEqual([false, true]);
  });

  it("without an overlap the old token is refused at once, and so is one whose overlap ran", async () => {
    const { token, known, rotate } = await setUp();
    const second = await rotate(3600);
    const third = await rotate(0);
    expect([await known(token), await known(second.token), await known(third.token)]).toEqual([false, false, true]);
    expect(third.device.previousTokenValidUntil).toBeNull();
  });

  it("a third token beside two that work is refused, and is given once the overlap is over", async () => {
    const { db, device, token, known, rotate } = await setUp();
    const second = await rotate(3600);
    expect(await codeOf(rotate(3600))).toBe("INVALID_STATE");
    expect([await known(token), await known(second.token)]).toEqual([true, true]);
    await endOverlap(db, device.id);
    const third = await rotate(3600);
    expect([await known(token), await known(second.token), await known(third.token)]).toEqual([false, true, true]);
  });

  it("the previous token is revoked before its time", async () => {
    const { token, known, rotate, revoke } = await setUp();
    const rotated = await rotate();
    await revoke("previous");
    expect([await known(token), await known(rotated.token)]).toEqual([false, true]);
    expect(await codeOf(revoke("previous"))).toBe("INVALID_STATE");
  });

  it("a rotation whose answer was lost is taken back", async () => {
    const { token, known, rotate, revoke } = await setUp();
    const lost = await rotate();
    expect(await revoke("newest")).toMatchObject({ hasToken: true, previousTokenValidUntil: null });
    expect([await known(token), await known(lost.token)]).toEqual([true, false]);
  });

  it("all tokens are revoked, and a new one is made after", async () => {
    const { token, known, rotate, revoke } = await setUp();
    const rotated = await rotate();
    expect(await revoke("all")).toMatchObject({ hasToken: false, previousTokenValidUntil: null });
    expect([await known(token), await known(rotated.token)]).toEqual([false, false]);
    const fresh = await rotate();
    expect(fresh.device).toMatchObject({ hasToken: true, previousTokenValidUntil: null });
    expect([await known(token), await known(fresh.token)]).toEqual([false, true]);
  });

  it("no token and no hash goes into the audit log", async () => {
    const { db, device, token, rotate } = await setUp();
    const rotated = await rotate();
    const entries = JSON.stringify((await listAudit(db, { subjectId: device.id })).items);
    for (const secret of [
      token,
      rotated.token,
      ...[token, rotated.token].map((text) => hashToken(text).toString("hex")),
    ])
      expect(entries).not.toContain(secret);
    expect(entries).toContain('"overlapSeconds":86400');
  });

  it.each([-1, 0.5, 7_776_001, Number.NaN])("an overlap of %d seconds is refused", async (overlapSeconds) => {
    const { rotate } = await setUp();
    expect(await codeOf(rotate(overlapSeconds))).toBe("INVALID_FIELD");
  });

  it("of no device is NOT_FOUND", async () => {
    const { db } = database();
    for (const deviceId of ["\0", NO_DEVICE]) {
      expect(await codeOf(rotateDeviceToken(db, { actor: SYSTEM, deviceId }))).toBe("NOT_FOUND");
      expect(await codeOf(revokeDeviceTokens(db, { actor: SYSTEM, deviceId, which: "all" }))).toBe("NOT_FOUND");
    }
  });
});
