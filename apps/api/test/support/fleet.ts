import { createHash, randomBytes } from "node:crypto";
import { expect } from "vitest";
import type { Caller, TestApi } from "./start-api.ts";

let made = 0;

/** A name that no other test uses. */
export function uniqueName(prefix: string): string {
  made += 1;
  return `${prefix}-${made}`;
}

/** Creates a product. */
export async function aProduct(api: TestApi, fields: object = {}): Promise<string> {
  const name = uniqueName("product");
  const { status } = await api.operator("POST", "/v1/products", { json: { name, ...fields } });
  expect(status).toBe(201);
  return name;
}

/** A file that was uploaded. */
export interface UploadedFirmware {
  readonly id: string;
  readonly bytes: Buffer;
  readonly sha256: string;
}

/** Uploads random bytes as a firmware, and releases it unless told otherwise. */
export async function aFirmware(
  api: TestApi,
  input: {
    readonly product: string;
    readonly version?: string;
    readonly sizeBytes?: number;
    readonly release?: boolean;
    readonly requiresVersion?: string;
  },
): Promise<UploadedFirmware> {
  const bytes = randomBytes(input.sizeBytes ?? 1000);
  const { version = "2.0.0", requiresVersion } = input;
  const facts = new URLSearchParams({ version, ...(requiresVersion === undefined ? {} : { requiresVersion }) });
  const uploaded = await api.operator("POST", `/v1/products/${input.product}/firmware?${facts}`, { bytes });
  expect(uploaded.status).toBe(201);
  const id: string = uploaded.body.id;
  if (input.release !== false) {
    const released = await api.operator("POST", `/v1/firmware/${id}/release`, { json: { startRollout: true } });
    expect(released.status).toBe(200);
  }
  return { id, bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** Registers a device. */
export async function aDevice(
  api: TestApi,
  input: { readonly product: string; readonly channel?: string },
): Promise<{ readonly id: string; readonly serial: string; readonly token: string; readonly call: Caller }> {
  const serial = uniqueName("serial");
  const { product, ...fields } = input;
  const { status, body } = await api.operator("POST", `/v1/products/${product}/devices`, {
    json: { serial, ...fields },
  });
  expect(status).toBe(201);
  return { id: body.device.id, serial, token: body.token, call: api.as(body.token) };
}
