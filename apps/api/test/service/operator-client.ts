import { TEST_OPERATOR_KEY } from "./service-process.ts";

/** Calls the JSON API; rejects only when no answer came. */
export async function call(
  url: string,
  path: string,
  init: {
    readonly method?: string;
    readonly token?: string;
    readonly json?: unknown;
    readonly bytes?: Uint8Array;
  } = {},
) {
  const { method = "POST", token = TEST_OPERATOR_KEY, json, bytes } = init;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(json === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    ...(bytes === undefined ? {} : { body: new Uint8Array(bytes) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    // biome-ignore lint/suspicious/noExplicitAny: a body is whatever JSON the service sends
    body: (text === "" ? undefined : JSON.parse(text)) as any,
  };
}

/** A product `lamp` with a released firmware 2.0.0, and devices with their tokens. */
export async function seedFleet(url: string, { devices }: { readonly devices: number }) {
  await call(url, "/v1/products", { json: { name: "lamp" } });
  const firmware = await call(url, "/v1/products/lamp/firmware?version=2.0.0", { bytes: Buffer.from("firmware") });
  await call(url, `/v1/firmware/${firmware.body.id}/release`, { json: { startRollout: true } });
  const tokens: string[] = [];
  for (let i = 0; i < devices; i++) {
    const registered = await call(url, "/v1/products/lamp/devices", { json: { serial: `lamp-${i}` } });
    tokens.push(registered.body.token);
  }
  return { firmwareId: firmware.body.id as string, tokens };
}

/** What a device asks. */
export function check(url: string, token: string) {
  return call(url, "/v1/check", { token, json: { version: "1.0.0" } });
}
