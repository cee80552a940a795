import { expect, it } from "vitest";
import {
  createGatewayToken,
  findArtifactForDevice,
  hashToken,
  listDevices,
  listGatewayTokens,
  recordAttributes,
  registerDevice,
  revokeDeviceTokens,
  revokeGatewayToken,
  rotateDeviceToken,
  updateDevice,
} from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { startChecks } from "../support/fleet.ts";
import { aProduct, aReleasedFirmware, SYSTEM, uniqueName } from "../support/records.ts";

export const gatewayTokenCases = casesOn("gateway tokens", (database) => {
  async function setUp() {
    const { db } = database();
    const product = await aProduct(db);
    const input = { actor: SYSTEM, product, name: "line 2", channel: "factory" };
    const { gatewayToken, token } = await createGatewayToken(db, input);
    const tokenHash = hashToken(token);
    const checks = startChecks(db);
    const check = (serial: string, version?: string) =>
      checks.checkForUpdate({ tokenHash, serial, reported: version === undefined ? {} : { version } });
    const found = async (serial: string) => (await listDevices(db, { product, serial })).items;
    return { db, product, gatewayToken, token, tokenHash, checks, check, found };
  }

  it("are listed by product, and stored as their hash alone", async () => {
    const { db, product, gatewayToken, token } = await setUp();
    expect(gatewayToken).toMatchObject({ product, name: "line 2", channel: "factory", revokedAt: null });
    expect((await listGatewayTokens(db, { product })).items).toEqual([gatewayToken]);
    expect((await listGatewayTokens(db, { product: await aProduct(db) })).items).toEqual([]);
    const rows = await database().query("select g::text as row from gateway_tokens g");
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  it("register an unknown serial at its check, in their product and channel, without a token", async () => {
    const { product, check, checks, found } = await setUp();
    const answer = await check("new-1", "1.0.0");
    expect(answer).toMatchObject({ decision: "none", reason: "NO_FIRMWARE", device: { serial: "new-1", product } });
    await checks.close();
    const [device] = await found("new-1");
    expect(device).toMatchObject({
      channel: "factory",
      registeredBy: "gateway",
      hasToken: false,
      reportedVersion: "1.0.0",
    });
    expect(device?.lastSeenAt).toBeInstanceOf(Date);
  });

  it("of 50 first checks of one serial at once make one device", async () => {
    const { check, found } = await setUp();
    const answers = await Promise.all(inParallel(50, () => check("herd")));
    expect(new Set(answers.map(({ device }) => device.id)).size).toBe(1);
    expect(await found("herd")).toHaveLength(1);
  });

  it("serve a device from its offer over its reports and its download to its success", async () => {
    const { db, product, tokenHash, checks, check, found } = await setUp();
    await check("hub");
    await updateDevice(db, { actor: SYSTEM, deviceId: (await found("hub"))[0]?.id ?? "", channel: "stable" });
    const firmware = await aReleasedFirmware(db, { product, version: "2.0.0" });
    const answer = await check("hub", "1.0.0");
    if (answer.decision !== "update") throw new Error(`It was answered ${answer.reason}.`);
    const credentials = { tokenHash, serial: "hub" };
    const report = (state: "downloading" | "installed") =>
      checks.recordReport({ ...credentials, attemptId: answer.attempt.id, report: { state } });
    expect(await report("downloading")).toMatchObject({ effect: "moved" });
    expect(await findArtifactForDevice(db, { ...credentials, firmwareId: firmware.id })).toMatchObject({
      firmwareId: firmware.id,
    });
    const others = { tokenHash, serial: "other" };
    await check("other");
    expect(
      await codeOf(checks.recordReport({ ...others, attemptId: answer.attempt.id, report: { state: "failed" } })),
    ).toBe("NOT_FOUND");
    expect(await codeOf(findArtifactForDevice(db, { ...others, firmwareId: firmware.id }))).toBe("NOT_FOUND");
    expect(await report("installed")).toMatchObject({ effect: "moved" });
    expect(await check("hub", "2.0.0")).toMatchObject({ reason: "UP_TO_DATE" });
  });

  it("are refused by a device that has a token of its own, until that is revoked", async () => {
    const { db, product, tokenHash, checks, check } = await setUp();
    const { device } = await registerDevice(db, { actor: SYSTEM, product, serial: "own" });
    const all = () =>
      tally([
        check("own"),
        checks.recordReport({ tokenHash, serial: "own", attemptId: 1, report: { state: "failed" } }),
        findArtifactForDevice(db, { tokenHash, serial: "own", firmwareId: device.id }),
        recordAttributes(db, { tokenHash, serial: "own", attributes: {} }),
      ]);
    expect(await all()).toEqual({ GATEWAY_TOKEN_REFUSED: 4 });
    await revokeDeviceTokens(db, { actor: SYSTEM, deviceId: device.id, which: "all" });
    expect(await all()).toEqual({ "no error": 2, NOT_FOUND: 2 });
    await rotateDeviceToken(db, { actor: SYSTEM, deviceId: device.id });
    expect(await all()).toEqual({ GATEWAY_TOKEN_REFUSED: 4 });
  });

  it("are refused once revoked, for known serials and unknown ones, which they no longer register", async () => {
    const { db, gatewayToken, check, found } = await setUp();
    await check("known");
    const revoke = () => revokeGatewayToken(db, { actor: SYSTEM, gatewayTokenId: gatewayToken.id });
    const revoked = await revoke();
    expect(revoked.revokedAt).toBeInstanceOf(Date);
    expect(await revoke()).toEqual(revoked);
    expect(await tally([check("known"), check("unknown")])).toEqual({ GATEWAY_TOKEN_INVALID: 2 });
    expect([await found("known"), await found("unknown")]).toMatchObject([[{}], []]);
  });

  it("do not serve another product's device of the same serial", async () => {
    const { db, check } = await setUp();
    const other = await aProduct(db);
    const { device } = await registerDevice(db, { actor: SYSTEM, product: other, serial: "twin" });
    expect((await check("twin")).device.id).not.toBe(device.id);
  });

  it("are no device tokens, and device tokens are none of them", async () => {
    const { db, product, tokenHash, checks } = await setUp();
    await expect(checks.checkForUpdate({ tokenHash })).rejects.toMatchObject({
      code: "DEVICE_TOKEN_INVALID",
      message: expect.stringContaining("gateway's token goes with the device's serial"),
    });
    const { token } = await registerDevice(db, { actor: SYSTEM, product, serial: uniqueName("serial") });
    await expect(checks.checkForUpdate({ tokenHash: hashToken(token), serial: "x" })).rejects.toMatchObject({
      code: "GATEWAY_TOKEN_INVALID",
      message: expect.stringContaining("own token goes without"),
    });
  });

  it.each(["", "a b", "a/b", "dév", "a\0", "a".repeat(257)])("the serial %j is refused", async (serial) => {
    const { check } = await setUp();
    expect(await codeOf(check(serial))).toBe("INVALID_FIELD");
  });

  it("a report or attributes of a serial that never checked are NOT_FOUND, and register nothing", async () => {
    const { db, tokenHash, checks, found } = await setUp();
    const unknown = { tokenHash, serial: "unknown" };
    const refused = await tally([
      checks.recordReport({ ...unknown, attemptId: 1, report: { state: "failed" } }),
      recordAttributes(db, { ...unknown, attributes: { a: 1 } }),
    ]);
    expect(refused).toEqual({ NOT_FOUND: 2 });
    expect(await found("unknown")).toEqual([]);
  });

  it("a device's attributes are taken by the check and apart from it, at any time", async () => {
    const { db, tokenHash, checks, check, found } = await setUp();
    await check("tells");
    const credentials = { tokenHash, serial: "tells" };
    const attributes = async () => (await found("tells"))[0]?.attributes;
    await recordAttributes(db, { ...credentials, attributes: { modem: "1", ram: 512 } });
    await checks.checkForUpdate({ ...credentials, reported: { attributes: { modem: "2", ram: null, new: true } } });
    expect(await attributes()).toEqual({ modem: "2", new: true });
    await recordAttributes(db, { ...credentials, mode: "replace", attributes: { only: "this" } });
    expect(await attributes()).toEqual({ only: "this" });
  });

  it("a check with more attributes than a device may have keeps those there is room for, and is answered", async () => {
    const { db, tokenHash, checks, check, found } = await setUp();
    await check("full");
    const credentials = { tokenHash, serial: "full" };
    const many = (prefix: string) => Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`${prefix}${n}`, n]));
    await recordAttributes(db, { ...credentials, attributes: many("a") });
    expect(await codeOf(recordAttributes(db, { ...credentials, attributes: many("b") }))).toBe("INVALID_FIELD");
    await checks.checkForUpdate({ ...credentials, reported: { attributes: { ...many("b"), a0: "known" } } });
    const { attributes = {} } = (await found("full"))[0] ?? {};
    expect(Object.keys(attributes)).toHaveLength(64);
    expect(attributes).toMatchObject({ a0: "known", a39: 39, b0: 0 });
  });
});
