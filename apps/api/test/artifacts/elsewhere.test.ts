import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

const bytes = randomBytes(10_000);
const sha256 = createHash("sha256").update(bytes).digest("hex");

describe("a file on another host", { skip: !hasPostgres }, () => {
  let api: TestApi;
  let host: Server;
  let sourceUrl: string;
  const requests: string[] = [];

  beforeAll(async () => {
    api = await startApi();
    host = createServer((request, response) => {
      requests.push(`${request.method} ${request.url}`);
      response.end(bytes);
    }).listen(0, "127.0.0.1");
    await once(host, "listening");
    sourceUrl = `http://127.0.0.1:${(host.address() as AddressInfo).port}/a%20b/hub.bin?sig=%2Babc&x=1`;
  });
  afterAll(async () => {
    host.close();
    await api.close();
  });

  const register = (product: string, fields: object = {}) =>
    api.operator("POST", `/v1/products/${product}/firmware/by-url`, {
      json: { version: "2.0.0", sourceUrl, sizeBytes: bytes.length, sha256, ...fields },
    });
  const anOffer = async (fields: object = {}) => {
    const product = await aProduct(api);
    const { id } = (await register(product, fields)).body;
    const released = await api.operator("POST", `/v1/firmware/${id}/release`, { json: { startRollout: true } });
    expect(released.status).toBe(200);
    const device = await aDevice(api, { product });
    return { id, product, device, offer: (await device.call("POST", "/v1/check")).body };
  };
  /** As a client that follows no redirect. */
  const ask = (url: string, init: { method?: string; token?: string; headers?: Record<string, string> } = {}) =>
    fetch(new URL(url, api.url), {
      method: init.method ?? "GET",
      redirect: "manual",
      headers: { ...init.headers, ...(init.token === undefined ? {} : { authorization: `Bearer ${init.token}` }) },
    });

  test("is never asked for by the service, from its registration to the offer", async () => {
    const { id, product } = await anOffer();
    const found = (await api.operator("GET", `/v1/firmware/${id}`)).body;
    expect(found).toMatchObject({
      sourceUrl,
      artifact: { sizeBytes: 10_000, sha256, sha1: null, md5: null, fileName: `${product}-2.0.0.bin` },
    });
    expect(requests).toEqual([]);
  });

  test("is offered by the service's own address, without the hashes that nobody has given", async () => {
    const { id, offer } = await anOffer();
    expect(offer.firmware).toEqual({
      ...{ id, version: "2.0.0", sizeBytes: 10_000, sha256, contentType: "application/octet-stream" },
      ...{ fileName: expect.any(String), url: expect.stringContaining(`${api.url}/v1/firmware/${id}/artifact?`) },
    });
    const hashes = { sha1: "a".repeat(40), md5: "B".repeat(32) };
    expect((await anOffer(hashes)).offer.firmware).toMatchObject({ sha1: "a".repeat(40), md5: "b".repeat(32) });
  });

  test.each(["GET", "HEAD"])(
    "%s sends whoever was offered it there, with nothing of what let it in",
    async (method) => {
      const { id, device, offer } = await anOffer();
      for (const answer of [
        await ask(offer.firmware.url, { method }),
        await ask(`/v1/firmware/${id}/artifact`, { method, token: device.token }),
        await ask(`/v1/firmware/${id}/artifact`, { method, token: device.token, headers: { range: "bytes=5-" } }),
      ]) {
        expect([answer.status, answer.headers.get("location")]).toEqual([302, sourceUrl]);
        expect(answer.headers.get("cache-control")).toBe("no-store");
        expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
        expect(await answer.text()).toBe("");
      }
    },
  );

  test("a client that follows gets the bytes", async () => {
    const { offer } = await anOffer();
    const answer = await fetch(offer.firmware.url);
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
    expect(requests).toEqual([`GET ${new URL(sourceUrl).pathname}${new URL(sourceUrl).search}`]);
  });

  test("to everybody else it is not there, and to nobody once it is withdrawn", async () => {
    const { id, device, offer } = await anOffer();
    const stranger = await aDevice(api, { product: await aProduct(api) });
    const path = `/v1/firmware/${id}/artifact`;
    expect((await ask(path, { token: stranger.token })).status).toBe(404);
    expect((await ask(path)).status).toBe(401);
    await api.operator("POST", `/v1/firmware/${id}/withdraw`);
    for (const answer of [await ask(path, { token: device.token }), await ask(offer.firmware.url)]) {
      expect(answer.status).toBe(410);
      expect(await answer.json()).toMatchObject({ code: "ARTIFACT_WITHDRAWN" });
    }
  });

  test.each([
    ["no size", { sizeBytes: undefined }, "FIELDS_INVALID"],
    ["no SHA-256", { sha256: undefined }, "FIELDS_INVALID"],
    ["no bytes", { sizeBytes: 0 }, "FIELDS_INVALID"],
    ["half a SHA-256", { sha256: sha256.slice(1) }, "FIELDS_INVALID"],
    ["an address without a host", { sourceUrl: "/hub.bin" }, "INVALID_FIELD"],
    ["credentials in the address", { sourceUrl: "https://a:b@cdn.example/hub.bin" }, "INVALID_FIELD"],
    ["another scheme", { sourceUrl: "file:///etc/passwd" }, "INVALID_FIELD"],
    ["a line break in the address", { sourceUrl: "https://cdn.example/\r\nX: y" }, "INVALID_FIELD"],
    ["a version that is none", { version: "latest" }, "INVALID_VERSION"],
    ["a signature without a key", { signature: Buffer.alloc(64).toString("base64") }, "INVALID_STATE"],
  ])("%s is refused, and nothing is registered", async (_what, fields, code) => {
    const product = await aProduct(api);
    const refused = await register(product, fields);
    expect(refused.body.code).toBe(code);
    expect((await api.operator("GET", `/v1/products/${product}/firmware`)).body.items).toEqual([]);
  });

  test("its address is in the audit log without the query, in which some hosts take a secret", async () => {
    const { id } = await anOffer();
    const log = await api.operator("GET", `/v1/audit?subjectId=${id}&action=firmware.register`);
    expect(log.body.items).toMatchObject([{ after: { sourceUrl: sourceUrl.split("?")[0], sha256 } }]);
    expect(log.bytes.toString()).not.toContain("sig=");
  });
});
