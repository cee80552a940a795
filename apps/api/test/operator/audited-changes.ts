import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import type { AuditAction } from "@ota/domain";
import { aDevice, aFirmware, aProduct, uniqueName } from "../support/fleet.ts";
import type { CallInit, TestApi } from "../support/start-api.ts";

/** One change by an operator's route, and what the audit log must say of it. */
export interface AuditedChange {
  readonly action: AuditAction;
  /** What the entry has; a change has both. */
  readonly facts: "after" | "before" | "both";
  /** Whether its answer shows a secret. @default false */
  readonly secret?: boolean;
  /** Makes what is to be changed, and says how it is. */
  prepare(api: TestApi): Promise<{ readonly path: string; readonly init?: CallInit }>;
}

/** The calls of `prepare` that only need an address. */
const at = (path: string, json?: object) => (json === undefined ? { path } : { path, init: { json } });

/** A change for each route of operators that writes, by its operation. A route that is missing here fails the test. */
export const AUDITED_CHANGES: Readonly<Record<string, AuditedChange>> = {
  createProduct: {
    ...{ action: "product.create", facts: "after" },
    prepare: async () => at("/v1/products", { name: uniqueName("hub") }),
  },
  updateProduct: {
    ...{ action: "product.update", facts: "both" },
    prepare: async (api) => at(`/v1/products/${await aProduct(api)}`, { maxAttempts: 5 }),
  },
  setSigningKey: {
    ...{ action: "product.update", facts: "both" },
    prepare: async (api) => at(`/v1/products/${await aProduct(api)}/signing-key`, { publicKey: newKey().publicKey }),
  },
  removeSigningKey: {
    ...{ action: "product.update", facts: "both" },
    prepare: async (api) => at(`/v1/products/${(await aSignedProduct(api)).product}/signing-key`),
  },
  uploadFirmware: {
    ...{ action: "firmware.register", facts: "after" },
    prepare: async (api) => ({
      path: `/v1/products/${await aProduct(api)}/firmware?version=1.0.0`,
      init: { bytes: randomBytes(10) },
    }),
  },
  registerFirmwareByUrl: {
    ...{ action: "firmware.register", facts: "after" },
    prepare: async (api) =>
      at(`/v1/products/${await aProduct(api)}/firmware/by-url`, {
        ...{ version: "1.0.0", sourceUrl: "https://cdn.example/a?token=secret" },
        ...{ sizeBytes: 1, sha256: "a".repeat(64) },
      }),
  },
  signFirmware: {
    ...{ action: "firmware.sign", facts: "both" },
    async prepare(api) {
      const { product, sign } = await aSignedProduct(api);
      const { id, bytes, sha256 } = await aFirmware(api, { product, version: "1.0.0", release: false });
      const manifest = `ota-fw-v1\n${product}\n1.0.0\n${bytes.length}\n${sha256}`;
      return at(`/v1/firmware/${id}/signature`, { signature: sign(manifest) });
    },
  },
  deleteFirmware: {
    ...{ action: "firmware.delete", facts: "before" },
    prepare: async (api) => at(`/v1/firmware/${await aDraft(api)}`),
  },
  releaseFirmware: {
    ...{ action: "firmware.release", facts: "both" },
    prepare: async (api) => at(`/v1/firmware/${await aDraft(api)}/release`),
  },
  withdrawFirmware: {
    ...{ action: "firmware.withdraw", facts: "both" },
    prepare: async (api) => at(`/v1/firmware/${(await anOffer(api)).firmwareId}/withdraw`),
  },
  createRollout: {
    ...{ action: "rollout.create", facts: "after" },
    prepare: async (api) => at(`/v1/firmware/${await aDraft(api)}/rollouts`, { percentage: 10 }),
  },
  updateRollout: {
    ...{ action: "rollout.update", facts: "both" },
    prepare: async (api) => at((await aRollout(api)).path, { percentage: 10 }),
  },
  startRollout: {
    ...{ action: "rollout.start", facts: "both" },
    prepare: async (api) => at(`${(await aRollout(api)).path}/start`),
  },
  pauseRollout: {
    ...{ action: "rollout.pause", facts: "both" },
    prepare: async (api) => at(`${(await aRollout(api, "start")).path}/pause`),
  },
  resumeRollout: {
    ...{ action: "rollout.resume", facts: "both" },
    prepare: async (api) => at(`${(await aRollout(api, "start", "pause")).path}/resume`),
  },
  finishRollout: {
    ...{ action: "rollout.finish", facts: "both" },
    prepare: async (api) => at(`${(await aRollout(api, "start")).path}/finish`),
  },
  stopRollout: {
    ...{ action: "rollout.stop", facts: "both" },
    prepare: async (api) => at(`${(await aRollout(api)).path}/stop`),
  },
  allowDevices: {
    ...{ action: "rollout.allow_devices", facts: "after" },
    async prepare(api) {
      const { path, device } = await aRollout(api);
      return at(`${path}/devices`, { deviceIds: [device.id] });
    },
  },
  disallowDevices: {
    ...{ action: "rollout.disallow_devices", facts: "both" },
    async prepare(api) {
      const { path, device } = await aRollout(api);
      await api.operator("POST", `${path}/devices`, { json: { deviceIds: [device.id] } });
      return at(`${path}/devices/remove`, { deviceIds: [device.id] });
    },
  },
  registerDevice: {
    ...{ action: "device.register", facts: "after", secret: true },
    prepare: async (api) => at(`/v1/products/${await aProduct(api)}/devices`, { serial: uniqueName("serial") }),
  },
  registerDevices: {
    ...{ action: "device.register_bulk", facts: "after", secret: true },
    prepare: async (api) => ({
      path: `/v1/products/${await aProduct(api)}/devices/bulk`,
      init: {
        bytes: Buffer.from(`{"serial":"${uniqueName("serial")}"}\n{"serial":"${uniqueName("serial")}"}\n`),
        headers: { "content-type": "application/x-ndjson" },
      },
    }),
  },
  updateDevice: {
    ...{ action: "device.update", facts: "both" },
    prepare: async (api) => at(`/v1/devices/${(await newDevice(api)).id}`, { channel: "beta" }),
  },
  deleteDevice: {
    ...{ action: "device.delete", facts: "both" },
    prepare: async (api) => at(`/v1/devices/${(await newDevice(api)).id}`),
  },
  rotateDeviceToken: {
    ...{ action: "device.rotate_token", facts: "both", secret: true },
    prepare: async (api) => at(`/v1/devices/${(await newDevice(api)).id}/token`),
  },
  revokeDeviceTokens: {
    ...{ action: "device.revoke_tokens", facts: "both" },
    prepare: async (api) => at(`/v1/devices/${(await newDevice(api)).id}/token?which=all`),
  },
  createGatewayToken: {
    ...{ action: "gateway_token.create", facts: "after", secret: true },
    prepare: async (api) => at(`/v1/products/${await aProduct(api)}/gateway-tokens`, { name: "line 2" }),
  },
  revokeGatewayToken: {
    ...{ action: "gateway_token.revoke", facts: "both" },
    async prepare(api) {
      const path = `/v1/products/${await aProduct(api)}/gateway-tokens`;
      const { body } = await api.operator("POST", path, { json: { name: "line 2" } });
      return at(`/v1/gateway-tokens/${body.gatewayToken.id}/revoke`);
    },
  },
  cancelUpgrade: {
    ...{ action: "upgrade.cancel", facts: "both" },
    prepare: async (api) => at(`/v1/upgrades/${(await anOffer(api)).upgradeId}/cancel`),
  },
  resetUpgrade: {
    ...{ action: "upgrade.reset", facts: "both" },
    async prepare(api) {
      const { upgradeId, call, attemptId } = await anOffer(api);
      await call("POST", `/v1/attempts/${attemptId}/reports`, { json: { state: "failed" } });
      return at(`/v1/upgrades/${upgradeId}/reset`);
    },
  },
  createOperatorKey: {
    ...{ action: "operator_key.create", facts: "after", secret: true },
    prepare: async () => at("/v1/operator-keys", { name: "pipeline" }),
  },
  revokeOperatorKey: {
    ...{ action: "operator_key.revoke", facts: "both" },
    async prepare(api) {
      const { body } = await api.operator("POST", "/v1/operator-keys", { json: { name: "pipeline" } });
      return at(`/v1/operator-keys/${body.operatorKey.id}/revoke`);
    },
  },
};

async function newDevice(api: TestApi) {
  return aDevice(api, { product: await aProduct(api) });
}

async function aDraft(api: TestApi): Promise<string> {
  return (await aFirmware(api, { product: await aProduct(api), release: false })).id;
}

/** A rollout of a released firmware, taken through some steps, with a device of its product. */
async function aRollout(api: TestApi, ...steps: readonly string[]) {
  const product = await aProduct(api);
  const { id } = await aFirmware(api, { product, release: false });
  await api.operator("POST", `/v1/firmware/${id}/release`);
  const { body } = await api.operator("POST", `/v1/firmware/${id}/rollouts`);
  const path = `/v1/rollouts/${body.id}`;
  for (const step of steps) await api.operator("POST", `${path}/${step}`);
  return { path, device: await aDevice(api, { product }) };
}

/** A device that was offered a firmware. */
async function anOffer(api: TestApi) {
  const product = await aProduct(api);
  const { id: firmwareId } = await aFirmware(api, { product });
  const { call } = await aDevice(api, { product });
  const { upgradeId, attempt } = (await call("POST", "/v1/check")).body;
  return { product, firmwareId, call, upgradeId: upgradeId as string, attemptId: attempt.id as number };
}

function newKey() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return { publicKey: publicKey.export({ format: "pem", type: "spki" }).toString(), privateKey };
}

/** A product with a key, and what signs by it. */
async function aSignedProduct(api: TestApi) {
  const product = await aProduct(api);
  const { publicKey, privateKey } = newKey();
  await api.operator("PUT", `/v1/products/${product}/signing-key`, { json: { publicKey } });
  return { product, sign: (text: string) => sign(null, Buffer.from(text), privateKey).toString("base64") };
}
