import { hasPostgres } from "@ota/testkit";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApp } from "../../src/app.ts";
import type { Services } from "../../src/services.ts";
import { allRoutes, document } from "../support/document-check.ts";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

const operations = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
  Object.keys(item ?? {}).map((method) => ({ path, method: method.toUpperCase() })),
);

describe("the application", () => {
  test("has a route mounted for every operation of the document, and no other", () => {
    const services = {} as Services;
    const app = createApp({
      services,
      logger: pino({ level: "silent" }),
      version: "1",
      bodyLimitBytes: 1024,
      bodyTimeoutMs: 1000,
    });
    const mounted = app.router.stack.flatMap(({ route }) => (route === undefined ? [] : [route.path]));
    const described = operations.map(({ path }) => path.replaceAll(/\{(\w+)\}/g, ":$1"));
    expect(new Set(mounted)).toEqual(new Set(described));
    expect(mounted.length).toBeGreaterThanOrEqual(allRoutes.length);
  });
});

describe("the served reference", { skip: !hasPostgres }, () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  test("is the document, with the address at which the service is reached", async () => {
    const { status, body } = await api.as(undefined)("GET", "/openapi.json");
    expect(status).toBe(200);
    expect(body.servers).toEqual([{ url: api.url }]);
    expect(body.paths).toEqual(document.paths);
    expect(body.components).toEqual(document.components);
  });

  test("names the address by which a trusted proxy was asked, and so do the links of a check's answer", async () => {
    const proxied = await startApi({ trustProxy: "loopback" });
    const headers = { "x-forwarded-proto": "https", "x-forwarded-host": "ota.example.com", "x-forwarded-prefix": "/a" };
    const servers = async (as: TestApi) => (await as.as(undefined)("GET", "/openapi.json", { headers })).body.servers;
    expect(await servers(proxied)).toEqual([{ url: "https://ota.example.com/a" }]);
    expect(await servers(api)).toEqual([{ url: api.url }]);
    const product = await aProduct(proxied);
    await aFirmware(proxied, { product });
    const device = await aDevice(proxied, { product });
    const { url } = (await device.call("POST", "/v1/check", { headers })).body.firmware;
    expect(url).toMatch(/^https:\/\/ota\.example\.com\/a\/v1\/firmware\//);
    const direct = url.replace("https://ota.example.com/a", proxied.url);
    expect((await proxied.as(undefined)("GET", direct)).status).toBe(200);
    await proxied.close();
  });

  test("is a page that may load nothing", async () => {
    const { status, headers, bytes } = await api.as(undefined)("GET", "/docs");
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; /);
    expect(bytes.toString("utf8")).toContain("<!doctype html>");
  });

  test.each(operations)(
    "$method $path is there: it refuses by its own rules, not for want of a route",
    async ({ method, path }) => {
      const answer = await api.as("x".repeat(43))(method, path.replaceAll(/\{\w+\}/g, "x"));
      expect(["ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED", "INTERNAL_ERROR"]).not.toContain(answer.body?.code);
    },
  );
});
