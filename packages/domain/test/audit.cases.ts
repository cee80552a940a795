import { generateKeyPairSync, sign } from "node:crypto";
import { expect, it } from "vitest";
import {
  type Actor,
  type AttemptState,
  type AuditAction,
  cancelUpgrade,
  createGatewayToken,
  createOperatorKey,
  createProduct,
  type Database,
  deleteDevice,
  deleteFirmware,
  ensureOperatorKey,
  firmwareManifest,
  listAudit,
  registerDevice,
  registerDevices,
  registerFirmware,
  releaseFirmware,
  resetUpgrade,
  revokeDeviceTokens,
  revokeGatewayToken,
  revokeOperatorKey,
  rotateDeviceToken,
  setSigningKey,
  signFirmware,
  updateDevice,
  updateProduct,
  withdrawFirmware,
} from "../src/index.ts";
import { newToken } from "../src/tokens.ts";
import { rolloutChanges } from "./rollouts/audited-changes.ts";
import { anAttempt } from "./support/attempts.ts";
import type { AuditedChange } from "./support/audited-change.ts";
import { casesOn } from "./support/databases.ts";
import { codeOf, inParallel, tally } from "./support/errors.ts";
import {
  aDevice,
  aFirmware,
  aProduct,
  aReleasedFirmware,
  artifactFacts,
  SYSTEM,
  uniqueName,
} from "./support/records.ts";

const ACTOR: Actor = { kind: "operator", keyId: "01900000-0000-7000-8000-000000000000", name: "Zoë" };

/** A change of each kind, on records of its own, and the same change again, which must change nothing or be refused. */
const CHANGES: Record<AuditAction, AuditedChange> = {
  "product.create": async (db) => {
    const input = { actor: ACTOR, name: uniqueName("product") };
    const { name } = await createProduct(db, input);
    return { subjectId: name, again: () => createProduct(db, input) };
  },
  "product.update": async (db) => {
    const product = await aProduct(db);
    const change = () => updateProduct(db, { actor: ACTOR, product, maxAttempts: 7 });
    await change();
    return { subjectId: product, again: change };
  },
  "firmware.register": async (db) => {
    const input = { actor: ACTOR, product: await aProduct(db), version: "1.0.0", artifact: artifactFacts() };
    const { id } = await registerFirmware(db, input);
    return { subjectId: id, again: () => registerFirmware(db, input) };
  },
  "firmware.sign": async (db) => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const product = await aProduct(db);
    const { id, artifact } = await aFirmware(db, { product, version: "1.0.0" });
    const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
    await setSigningKey(db, { actor: SYSTEM, product, publicKey: pem });
    const manifest = firmwareManifest({ product, version: "1.0.0", ...artifact });
    const signature = sign(null, manifest, privateKey).toString("base64");
    const change = () => signFirmware(db, { actor: ACTOR, firmwareId: id, signature });
    await change();
    return { subjectId: id, again: change };
  },
  "firmware.delete": async (db) => {
    const { id } = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    const change = () => deleteFirmware(db, { actor: ACTOR, firmwareId: id });
    await change();
    return { subjectId: id, again: change };
  },
  "firmware.release": async (db) => {
    const { id } = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    const change = () => releaseFirmware(db, { actor: ACTOR, firmwareId: id });
    await change();
    return { subjectId: id, again: change };
  },
  "firmware.withdraw": async (db) => {
    const { id } = await aReleasedFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    const change = () => withdrawFirmware(db, { actor: ACTOR, firmwareId: id });
    await change();
    return { subjectId: id, again: change };
  },
  ...rolloutChanges(ACTOR),
  "upgrade.cancel": async (db) => {
    const { upgradeId } = await anUpgrade(db, "downloading");
    const change = () => cancelUpgrade(db, { actor: ACTOR, upgradeId });
    await change();
    return { subjectId: upgradeId, again: change };
  },
  "upgrade.reset": async (db) => {
    const { upgradeId } = await anUpgrade(db, "failed");
    const change = () => resetUpgrade(db, { actor: ACTOR, upgradeId });
    await change();
    return { subjectId: upgradeId, again: change };
  },
  "device.register": async (db) => {
    const input = { actor: ACTOR, product: await aProduct(db), serial: uniqueName("serial") };
    const { device } = await registerDevice(db, input);
    return { subjectId: device.id, again: () => registerDevice(db, input) };
  },
  "device.rotate_token": async (db) => {
    const { device } = await aDevice(db, await aProduct(db));
    await rotateDeviceToken(db, { actor: ACTOR, deviceId: device.id });
    return { subjectId: device.id, again: () => rotateDeviceToken(db, { actor: ACTOR, deviceId: "gone" }) };
  },
  "device.update": async (db) => {
    const { device } = await aDevice(db, await aProduct(db));
    const change = () => updateDevice(db, { actor: ACTOR, deviceId: device.id, blocked: true });
    await change();
    return { subjectId: device.id, again: change };
  },
  "device.register_bulk": async (db) => {
    const product = await aProduct(db);
    const lines = [{ line: 1, device: { serial: "a" } }];
    await registerDevices(db, { actor: ACTOR, product, lines });
    return { subjectId: product, again: () => registerDevices(db, { actor: ACTOR, product, lines }) };
  },
  "device.revoke_tokens": async (db) => {
    const { device } = await aDevice(db, await aProduct(db));
    const change = () => revokeDeviceTokens(db, { actor: ACTOR, deviceId: device.id, which: "all" });
    await change();
    return { subjectId: device.id, again: change };
  },
  "device.delete": async (db) => {
    const { device } = await aDevice(db, await aProduct(db));
    const change = () => deleteDevice(db, { actor: ACTOR, deviceId: device.id });
    await change();
    return { subjectId: device.id, again: change };
  },
  "gateway_token.create": async (db) => {
    const product = await aProduct(db);
    const { gatewayToken } = await createGatewayToken(db, { actor: ACTOR, product, name: "made" });
    return { subjectId: gatewayToken.id, again: () => createGatewayToken(db, { actor: ACTOR, product, name: "" }) };
  },
  "gateway_token.revoke": async (db) => {
    const input = { actor: SYSTEM, product: await aProduct(db), name: "goes" };
    const { gatewayToken } = await createGatewayToken(db, input);
    const change = () => revokeGatewayToken(db, { actor: ACTOR, gatewayTokenId: gatewayToken.id });
    await change();
    return { subjectId: gatewayToken.id, again: change };
  },
  "operator_key.create": async (db) => {
    const { operatorKey } = await createOperatorKey(db, { actor: ACTOR, name: "made" });
    return { subjectId: operatorKey.id, again: () => createOperatorKey(db, { actor: ACTOR, name: "" }) };
  },
  "operator_key.revoke": async (db) => {
    await createOperatorKey(db, { actor: SYSTEM, name: "stays" });
    const { operatorKey } = await createOperatorKey(db, { actor: SYSTEM, name: "goes" });
    const change = () => revokeOperatorKey(db, { actor: ACTOR, operatorKeyId: operatorKey.id });
    await change();
    return { subjectId: operatorKey.id, again: change };
  },
};

async function anUpgrade(db: Database, state: AttemptState): Promise<{ upgradeId: string }> {
  const product = await aProduct(db);
  const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
  const { device } = await aDevice(db, product);
  return anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state });
}

export const auditCases = casesOn("the audit log", (database) => {
  it.each(Object.entries(CHANGES))("%s writes one row, and none where nothing is changed", async (action, change) => {
    const { db } = database();
    const { subjectId, again, by = ACTOR } = await change(db);
    const rows = async () => (await listAudit(db, { subjectId })).items.filter((entry) => entry.action === action);
    expect(await rows()).toEqual([
      {
        ...{ id: expect.any(String), at: expect.any(Date), actor: by, action, subjectId },
        ...{ before: expect.toSatisfy(isRecordOrNull), after: expect.toSatisfy(isRecordOrNull) },
      },
    ]);
    await codeOf(again());
    expect(await rows()).toHaveLength(1);
  });

  it("a change that is refused leaves no row", async () => {
    const { db } = database();
    const newest = async () => (await listAudit(db, { limit: 1 })).items[0]?.id;
    const product = await aProduct(db);
    const { device } = await aDevice(db, product);
    const before = await newest();
    const refused = await tally([
      createProduct(db, { actor: ACTOR, name: product }),
      registerDevice(db, { actor: ACTOR, product, serial: device.serial }),
      registerFirmware(db, { actor: ACTOR, product, version: "x", artifact: artifactFacts() }),
    ]);
    expect(refused).toEqual({ ALREADY_EXISTS: 2, INVALID_VERSION: 1 });
    expect(await newest()).toBe(before);
  });

  it("a row tells what was before and after", async () => {
    const { db } = database();
    const { device } = await aDevice(db, await aProduct(db));
    await updateDevice(db, { actor: ACTOR, deviceId: device.id, channel: "beta" });
    const [entry] = (await listAudit(db, { subjectId: device.id, limit: 1 })).items;
    expect(entry).toMatchObject({
      before: { channel: "stable", hardwareRevision: null, blocked: false },
      after: { channel: "beta", hardwareRevision: null, blocked: false },
    });
  });

  it("a key from outside is written once, as made by the service itself", async () => {
    const { db } = database();
    const input = { name: uniqueName("bootstrap"), key: newToken() };
    const [first] = await Promise.all(inParallel(10, () => ensureOperatorKey(db, input)));
    const { items } = await listAudit(db, { subjectId: first?.id });
    expect(items).toMatchObject([{ actor: SYSTEM, action: "operator_key.create", after: { name: input.name } }]);
  });

  it.each(["update audit_log set action = 'device.update'", "delete from audit_log", "truncate audit_log"])(
    "the database refuses: %s",
    async (statement) => {
      const { db, query } = database();
      await aProduct(db);
      const count = "select count(*)::int as rows from audit_log";
      const before = await query(count);
      await expect(query(statement)).rejects.toThrow("Rows of audit_log are only ever added");
      expect(await query(count)).toEqual(before);
    },
  );

  it.each(["", "\0", "a".repeat(129)])("the subject %j is refused", async (subjectId) => {
    expect(await codeOf(listAudit(database().db, { subjectId }))).toBe("INVALID_FIELD");
  });
});

function isRecordOrNull(value: unknown): boolean {
  return typeof value === "object";
}
