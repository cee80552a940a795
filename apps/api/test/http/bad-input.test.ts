import { connect } from "node:net";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sendRaw } from "../support/raw-http.ts";
import { startApi, type TestApi } from "../support/start-api.ts";
import type { BadRequest } from "./bad-request.ts";
import { badRequests } from "./bad-requests.ts";

describe.skipIf(!hasPostgres)("bad input", () => {
  let api: TestApi;
  let tokens: Readonly<Record<string, string>>;
  let ids: Readonly<Record<string, string>>;

  beforeAll(async () => {
    api = await startApi();
    const { operator } = api;
    await operator("POST", "/v1/products", { json: { name: "lamp" } });
    const upload = await operator("POST", "/v1/products/lamp/firmware?version=2.0.0", {
      bytes: Buffer.from("firmware"),
    });
    await operator("POST", `/v1/firmware/${upload.body.id}/release`, { json: { startRollout: true } });
    const register = async (serial: string) =>
      (await operator("POST", "/v1/products/lamp/devices", { json: { serial } })).body as {
        device: { id: string };
        token: string;
      };
    const device = await register("lamp-1");
    // Another hardware would do as well: this one is never offered anything, since it never asks.
    const other = await register("lamp-2");
    const rotated = await register("lamp-3");
    await operator("POST", `/v1/devices/${rotated.device.id}/token`, { json: { overlapSeconds: 0 } });
    const gateway = (await operator("POST", "/v1/products/lamp/gateway-tokens", { json: { name: "gateway" } })).body;
    const key = (await operator("POST", "/v1/operator-keys", { json: { name: "to be revoked" } })).body;
    await operator("POST", `/v1/operator-keys/${key.operatorKey.id}/revoke`);
    const answer = await api.as(device.token)("POST", "/v1/check", { json: { version: "1.0.0" } });
    tokens = {
      ...{ device: device.token, operator: api.operatorKey, "other-device": other.token },
      ...{ gateway: gateway.token, rotated: rotated.token, revoked: key.key },
    };
    ids = { ":attempt": String(answer.body.attempt.id), ":firmware": upload.body.id };
  });
  afterAll(() => api.close());

  test.for(badRequests)("$title is answered $status $code", async (row) => {
    const answer = await sendRaw(api.url, bytesOf(row, { tokens, ids }));
    expect({ status: answer.status, code: answer.body.code }).toEqual({ status: row.status, code: row.code });
    expect(answer.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
    expect(answer.body).toMatchObject({ status: row.status, type: `/docs#${row.code}`, title: expect.any(String) });
    expect(answer.body.requestId).toBe(answer.headers["x-request-id"]);
    for (const [name, value] of Object.entries(row.answers ?? {})) expect(answer.headers[name]).toMatch(value);
    const fields = (answer.body.errors ?? []).map(({ field }: { field: string }) => field);
    expect(fields).toEqual(row.fields ?? []);
    const { token = "device" } = row;
    if (token !== null) expect(answer.text).not.toContain(tokens[token] ?? token);
  });

  test.for([
    {
      title: "headers of 20 000 bytes",
      bytes: `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`,
      status: 431,
    },
    { title: "a header with a NUL", bytes: "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Nul: a\0b\r\n\r\n", status: 400 },
    { title: "a request without Host", bytes: "GET /healthz HTTP/1.1\r\n\r\n", status: 400 },
    { title: "no HTTP at all", bytes: "\x16\x03\x01\x02\0\x01\0\r\n\r\n", status: 400 },
    {
      title: "two lengths",
      bytes: "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      status: 400,
    },
    {
      title: "a length and chunks",
      bytes: "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      status: 400,
    },
  ])("$title is answered $status", async ({ bytes, status }) => {
    const answer = await sendRaw(api.url, Buffer.from(bytes, "latin1"));
    expect(answer.status).toBe(status);
  });

  test("a body that is cut off changes nothing and harms nobody", async () => {
    const { hostname, port } = new URL(api.url);
    const socket = connect(Number(port), hostname);
    socket.write(`POST /v1/check HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tokens["device"]}\r\n`);
    socket.write("Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    expect((await api.as(tokens["device"])("POST", "/v1/check")).status).toBe(200);
  });
});

function bytesOf(
  row: BadRequest,
  known: { tokens: Readonly<Record<string, string>>; ids: Readonly<Record<string, string>> },
): Buffer {
  const { method = "POST", path = "/v1/check", token = "device", headers = [], body, type = "application/json" } = row;
  const filled = path.replace(/:attempt|:firmware/, (name) => known.ids[name] ?? "");
  const lines = [`${method} ${filled} HTTP/1.1`, "Host: x"];
  if (token !== null) lines.push(`Authorization: Bearer ${known.tokens[token] ?? token}`);
  if (body !== undefined && type !== null) lines.push(`Content-Type: ${type}`);
  if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  return Buffer.concat([Buffer.from(`${[...lines, ...headers].join("\r\n")}\r\n\r\n`), Buffer.from(body ?? "")]);
}
