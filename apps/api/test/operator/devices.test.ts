import { request } from "node:http";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

const NDJSON = "application/x-ndjson";

describe.skipIf(!hasPostgres)("devices over HTTP", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  async function aGateway(product: string) {
    const { body } = await api.operator("POST", `/v1/products/${product}/gateway-tokens`, {
      json: { name: "gateway" },
    });
    const call = (serial: string, method: string, path: string, json?: object) =>
      api.as(body.token)(method, path, {
        headers: { "OTA-Device-Serial": serial },
        ...(json === undefined ? {} : { json }),
      });
    return { id: body.gatewayToken.id as string, call };
  }

  function sendList(product: string, list: { type: string; text: string | Buffer; query?: string }) {
    const { type, text, query = "" } = list;
    return api.operator("POST", `/v1/products/${product}/devices/bulk${query}`, {
      bytes: Buffer.from(text),
      headers: { "content-type": type },
    });
  }

  const lines = (bytes: Buffer) =>
    bytes
      .toString("utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));

  describe("a gateway's devices", () => {
    test("register themselves, update by it, and are listed", async () => {
      const product = await aProduct(api);
      await aFirmware(api, { product });
      const gateway = await aGateway(product);
      const { body } = await gateway.call("hub-1", "POST", "/v1/check", {
        version: "1.0.0",
        attributes: { modem: "4" },
      });
      expect(body).toMatchObject({ decision: "update", device: { serial: "hub-1", product } });
      const { id } = body.attempt;
      const report = await gateway.call("hub-1", "POST", `/v1/attempts/${id}/reports`, { state: "downloading" });
      expect(report).toMatchObject({ status: 200, body: { attempt: { id, state: "downloading" } } });
      expect((await gateway.call("hub-1", "GET", `/v1/firmware/${body.firmware.id}/artifact`)).status).toBe(200);
      expect((await gateway.call("hub-1", "HEAD", `/v1/firmware/${body.firmware.id}/artifact`)).status).toBe(200);
      const told = await gateway.call("hub-1", "PUT", "/v1/attributes", { attributes: { slot: "b" } });
      expect(told.body).toEqual({ attributes: { modem: "4", slot: "b" } });
      const listed = await api.operator("GET", `/v1/devices?product=${product}&attribute=slot%3Db`);
      expect(listed.body.items).toMatchObject([{ serial: "hub-1", registeredBy: "gateway", hasToken: false }]);
    });

    test("are turned away once it is revoked", async () => {
      const product = await aProduct(api);
      const gateway = await aGateway(product);
      expect((await gateway.call("hub", "POST", "/v1/check")).status).toBe(200);
      const revoked = await api.operator("POST", `/v1/gateway-tokens/${gateway.id}/revoke`);
      expect(revoked.body.revokedAt).not.toBeNull();
      const refused = await gateway.call("hub", "POST", "/v1/check");
      expect([refused.status, refused.body.code]).toEqual([401, "GATEWAY_TOKEN_INVALID"]);
      const { items } = (await api.operator("GET", `/v1/products/${product}/gateway-tokens`)).body;
      expect(items).toEqual([revoked.body]);
    });
  });

  describe("a device's token", () => {
    test("works a day longer after a rotation, unless it is revoked", async () => {
      const device = await aDevice(api, { product: await aProduct(api) });
      const rotated = await api.operator("POST", `/v1/devices/${device.id}/token`);
      const statuses = async () => [
        (await device.call("POST", "/v1/check")).status,
        (await api.as(rotated.body.token)("POST", "/v1/check")).status,
      ];
      expect(await statuses()).toEqual([200, 200]);
      expect((await api.operator("POST", `/v1/devices/${device.id}/token`)).status).toBe(409);
      await api.operator("DELETE", `/v1/devices/${device.id}/token?which=previous`);
      expect(await statuses()).toEqual([401, 200]);
      const revoked = await api.operator("DELETE", `/v1/devices/${device.id}/token?which=all`);
      expect(revoked.body).toMatchObject({ hasToken: false });
      expect(await statuses()).toEqual([401, 401]);
    });
  });

  describe("the search for silent devices", () => {
    test("takes a time with its zone, and finds those that never asked", async () => {
      const product = await aProduct(api);
      const { serial } = await aDevice(api, { product });
      const found = (query: string) => api.operator("GET", `/v1/devices?product=${product}&${query}`);
      for (const time of ["2030-01-01T00:00:00Z", "2030-01-01T02:00:00%2B02:00"]) {
        const { status, body } = await found(`notSeenSince=${time}`);
        expect({ status, body }).toMatchObject({ status: 200, body: { items: [{ serial }], nextCursor: null } });
        expect((await found(`seenSince=${time}`)).body.items).toEqual([]);
      }
      expect((await found("notSeenSince=yesterday")).body.errors).toMatchObject([{ field: "query.notSeenSince" }]);
      expect((await found("seenSince=0000-01-01T00:00:00Z")).body.code).toBe("INVALID_FIELD");
    });
  });

  describe("a deleted device", () => {
    test("is refused while it has an open attempt, unless that may end; then it is gone", async () => {
      const product = await aProduct(api);
      await aFirmware(api, { product });
      const device = await aDevice(api, { product });
      const { body } = await device.call("POST", "/v1/check", { json: { version: "1.0.0" } });
      const refused = await api.operator("DELETE", `/v1/devices/${device.id}`);
      expect([refused.status, refused.body.attemptId]).toEqual([409, body.attempt.id]);
      expect((await api.operator("DELETE", `/v1/devices/${device.id}?endsAttempt=true`)).status).toBe(204);
      expect((await device.call("POST", "/v1/check")).status).toBe(401);
      expect((await api.operator("GET", `/v1/upgrades/${body.upgradeId}`)).status).toBe(404);
    });
  });

  describe("a list of devices", () => {
    test("is registered from lines of JSON, and answered with tokens that work", async () => {
      const product = await aProduct(api);
      const text = '{"serial":"a","groups":["g"],"attributes":{"ram":512}}\r\n\n{"serial":"b","timeZone":"Asia/Tokyo"}';
      const answer = await sendList(product, { type: `${NDJSON}; charset=utf-8`, text });
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, `${NDJSON}; charset=utf-8`]);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      const registered = lines(answer.bytes);
      expect(registered).toMatchObject([{ serial: "a", outcome: "registered" }, { serial: "b" }]);
      for (const { id, token } of registered) {
        expect((await api.as(token)("POST", "/v1/check")).body.device.id).toBe(id);
      }
    });

    test("is registered from CSV as a spreadsheet writes it", async () => {
      const product = await aProduct(api);
      const token = "0123456789abcdefghijklmnop";
      const text =
        "\uFEFFserial,channel,hardwareRevision,groups,attribute.site,attribute.größe,token\r\n" +
        `a,beta,rev b,pilot;berlin,"Berlin, ""Mitte""",L,\r\nb,,,,,,${token}\r\n`;
      const answer = await sendList(product, { type: "text/csv", text });
      expect(answer.bytes.toString("utf8")).toMatch(
        /^serial,id,outcome,token\r\na,[0-9a-f-]{36},registered,[\w-]{43}\r\nb,[0-9a-f-]{36},registered,\r\n$/,
      );
      const { items } = (await api.operator("GET", `/v1/devices?product=${product}`)).body;
      expect(items).toMatchObject([
        { serial: "b", channel: "stable", hardwareRevision: null, groups: [], attributes: {} },
        {
          ...{ serial: "a", channel: "beta", hardwareRevision: "rev b", groups: ["berlin", "pilot"] },
          attributes: { site: 'Berlin, "Mitte"', größe: "L" },
        },
      ]);
      expect((await api.as(token)("POST", "/v1/check")).body.device.serial).toBe("b");
    });

    test.each([
      [NDJSON, '{"serial":"ok"}\n{"serial":1}\n{"serial":"x","colour":"red","groups":["a;b"]}\n{"a\nnull\n'],
      ["text/csv", 'serial,colour,groups\nok,,\na b,,\nx,red,a/b\ny\n"z\n'],
    ])("of %s with bad lines is refused line by line, and nothing is registered", async (type, text) => {
      const product = await aProduct(api);
      const { status, body } = await sendList(product, { type, text });
      expect([status, body.code]).toEqual([422, "LINES_INVALID"]);
      const told = body.errors.map(({ line, field, code }: Record<string, unknown>) => [line, field, code]);
      expect(told).toEqual(
        type === NDJSON
          ? [
              [2, "serial", "INVALID_FIELD"],
              [3, "groups.0", "INVALID_FIELD"],
              [3, "colour", "UNKNOWN_FIELD"],
              [4, null, "INVALID_LINE"],
              [5, null, "INVALID_FIELD"],
            ]
          : [
              [3, "serial", "INVALID_FIELD"],
              [4, "groups.0", "INVALID_FIELD"],
              [4, "colour", "UNKNOWN_FIELD"],
              [5, null, "INVALID_LINE"],
              [6, null, "INVALID_LINE"],
            ],
      );
      expect(body.errorsTotal).toBe(told.length);
      expect((await api.operator("GET", `/v1/devices?product=${product}`)).body.items).toEqual([]);
    });

    test.each([
      [NDJSON, `{"serial":"${"x".repeat(70_000)}"}\n{"serial":"a b"}`, [1, 2]],
      ["text/csv", `serial\n${"x".repeat(70_000)}\n`, [2]],
      ["text/csv", "serial,serial\na,b\n", [1]],
      ["text/csv", "channel\nbeta\nbeta\n", [1]],
      ["text/csv", "serial;channel\na;beta\nb;beta\n", [1]],
      ["text/csv", "a,beta,0123456789abcdefghijklmnop\nb,beta,\n", [1]],
    ])(
      "of %s is refused where a line is too long, or a column is missing or comes twice",
      async (type, text, expected) => {
        const { status, body } = await sendList(await aProduct(api), { type, text });
        expect(status).toBe(422);
        expect(body.errors.map(({ line }: { line: number }) => line)).toEqual(expected);
        expect(JSON.stringify(body)).not.toContain("0123456789");
      },
    );

    test("over the limit of bytes is refused with 413, which its sender gets to read", async () => {
      const text = Buffer.alloc(17 * 1024 * 1024, `{"serial":"a b","x":"${"x".repeat(60_000)}"}\n`);
      const { status, body } = await sendList(await aProduct(api), { type: NDJSON, text });
      expect([status, body.code]).toEqual([413, "BODY_TOO_LARGE"]);
    });

    test("that is cut off registers nothing", async () => {
      const product = await aProduct(api);
      const { hostname, port } = new URL(api.url);
      await new Promise<void>((resolve) => {
        const sent = request({
          ...{ hostname, port, method: "POST", path: `/v1/products/${product}/devices/bulk` },
          headers: { authorization: `Bearer ${api.operatorKey}`, "content-type": NDJSON, "content-length": 1000 },
        });
        sent.on("error", () => {}).on("close", resolve);
        sent.write('{"serial":"a"}\n', () => setTimeout(() => sent.destroy(), 50));
      });
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect((await api.operator("GET", `/v1/devices?product=${product}`)).body.items).toEqual([]);
    });

    test("is sent again with what is new: the rest is skipped or updated", async () => {
      const product = await aProduct(api);
      const send = (text: string, query?: string) =>
        sendList(product, { type: NDJSON, text, ...(query ? { query } : {}) });
      await send('{"serial":"a"}');
      const both = '{"serial":"a","channel":"beta"}\n{"serial":"b"}';
      expect((await send(both)).body.errors).toMatchObject([{ line: 1, field: "serial", code: "ALREADY_EXISTS" }]);
      expect(lines((await send(both, "?existing=skip")).bytes)).toMatchObject([
        { serial: "a", outcome: "skipped" },
        { serial: "b", outcome: "registered" },
      ]);
      expect(lines((await send(both, "?existing=update")).bytes)).toMatchObject([
        { serial: "a", outcome: "updated" },
        { serial: "b", outcome: "unchanged" },
      ]);
    });

    test("of 10 000 devices is registered by one request", { timeout: 120_000 }, async () => {
      const product = await aProduct(api);
      const text = Array.from(
        { length: 10_000 },
        (_, n) => `{"serial":"s-${n}","groups":["g"],"attributes":{"n":${n}}}\n`,
      );
      const { status, bytes } = await sendList(product, { type: NDJSON, text: text.join("") });
      expect(status).toBe(200);
      const registered = lines(bytes);
      expect(new Set(registered.map(({ token }) => token)).size).toBe(10_000);
      expect(registered.every(({ serial }, n) => serial === `s-${n}`)).toBe(true);
    });
  });
});
