import { readFile } from "node:fs/promises";
import { NONE_REASONS } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { type Figures, scrape } from "../support/metrics.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

describe.skipIf(!hasPostgres)("/metrics", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  /** By how much each figure has grown, those that have not left out. */
  async function growth(action: () => Promise<unknown>): Promise<Figures> {
    const before = await scrape(api.as(undefined));
    await action();
    const after = await scrape(api.as(undefined));
    return new Map(
      [...after].flatMap(([name, value]) => {
        const grown = value - (before.get(name) ?? 0);
        return grown === 0 ? [] : [[name, grown]];
      }),
    );
  }

  test("is text that Prometheus reads, without a token", async () => {
    const { headers, bytes } = await api.as(undefined)("GET", "/metrics?from=prometheus");
    expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(bytes.toString("utf8")).toContain("# TYPE ota_checks_total counter\n");
  });

  test("counts checks by decision and reason, attempts as they move, and requests by route", async () => {
    const product = await aProduct(api, { confirmBy: "version" });
    const device = await aDevice(api, { product });
    const figures = await growth(async () => {
      await device.call("POST", "/v1/check", { json: { version: "1.0.0" } });
      await aFirmware(api, { product, version: "2.0.0" });
      const { body } = await device.call("POST", "/v1/check", { json: { version: "1.0.0" } });
      await device.call("POST", "/v1/check", { json: { version: "1.0.0" } });
      await device.call("POST", `/v1/attempts/${body.attempt.id}/reports`, { json: { state: "downloading" } });
      await device.call("POST", "/v1/check", { json: { version: "2.0.0" } });
    });
    expect(Object.fromEntries(figures)).toMatchObject({
      'ota_checks_total{decision="none",reason="NO_FIRMWARE"}': 1,
      'ota_checks_total{decision="update",reason="created"}': 1,
      'ota_checks_total{decision="update",reason="found"}': 1,
      'ota_checks_total{decision="none",reason="UP_TO_DATE"}': 1,
      ota_attempts_opened_total: 1,
      'ota_attempt_moves_total{to="downloading"}': 1,
      'ota_attempt_moves_total{to="succeeded"}': 1,
      'ota_check_lock_wait_seconds_count{outcome="acquired"}': 1,
      'ota_lock_hold_seconds_count{store="memory"}': 1,
      'ota_http_request_duration_seconds_count{method="POST",route="/v1/check",status="200"}': 4,
      'ota_http_request_duration_seconds_count{method="POST",route="/v1/attempts/{attemptId}/reports",status="200"}': 1,
    });
  });

  test("counts problems by code, and what no route takes under one name", async () => {
    const call = api.as("x".repeat(43));
    const figures = await growth(async () => {
      await call("POST", "/v1/check", { json: {} });
      await call("GET", "/v1/nothing/1");
      await call("GET", "/v1/nothing/2");
      await call("BREW" as "GET", "/v1/nothing/3").catch(() => {});
    });
    expect(Object.fromEntries(figures)).toMatchObject({
      'ota_problems_total{code="DEVICE_TOKEN_INVALID"}': 1,
      'ota_problems_total{code="ROUTE_NOT_FOUND"}': 2,
      'ota_http_request_duration_seconds_count{method="POST",route="/v1/check",status="401"}': 1,
      'ota_http_request_duration_seconds_count{method="none",route="none",status="404"}': 2,
    });
  });

  test("no label holds what a fleet has many of", async () => {
    const product = await aProduct(api);
    const device = await aDevice(api, { product });
    const firmware = await aFirmware(api, { product });
    const { body } = await device.call("POST", "/v1/check", { json: { version: "1.0.0" } });
    await device.call("GET", `/v1/firmware/${firmware.id}/artifact`);
    await api.operator("GET", `/v1/devices/${device.id}`);
    const names = [...(await scrape(api.as(undefined))).keys()];
    // A bucket's bound may well be the number of an attempt.
    const text = names.filter((name) => !name.includes("_bucket{")).join("\n");
    for (const word of [product, device.serial, device.id, firmware.id, `"${body.attempt.id}"`, "127.0.0.1"]) {
      expect(text).not.toContain(word);
    }
    const reasons = new Set(
      [...text.matchAll(/ota_checks_total\{decision="none",reason="(\w+)"\}/g)].map(([, word]) => word),
    );
    expect(reasons.size).toBeGreaterThan(0);
    for (const reason of reasons) expect(NONE_REASONS).toContain(reason);
  });

  test("every figure of the service's own is explained on the page about watching, and no other", async () => {
    const text = (await api.as(undefined)("GET", "/metrics")).bytes.toString("utf8");
    const shown = [...text.matchAll(/^# TYPE (ota_\w+) /gm)].map(([, name]) => name);
    const page = await readFile(new URL("../../../../docs/operate-monitoring.md", import.meta.url), "utf8");
    const explained = [...page.matchAll(/`(ota_\w+)/g)].map(([, name]) => name);
    expect(new Set(explained)).toEqual(new Set(shown));
  });

  test("shows the database's connections, the event loop and the process", async () => {
    const figures = await scrape(api.as(undefined));
    expect(figures.get('ota_database_connections{state="limit"}')).toBe(4);
    expect(figures.get('ota_database_connections{state="open"}')).toBeGreaterThan(0);
    for (const name of ["ota_database_oldest_statement_seconds", "nodejs_eventloop_lag_p99_seconds"]) {
      expect(figures.has(name), name).toBe(true);
    }
    expect(figures.get("process_resident_memory_bytes")).toBeGreaterThan(1_000_000);
  });
});

describe.skipIf(!hasPostgres)("/metrics by its configuration", () => {
  test("takes its token alone where one is set", async () => {
    const token = "a-token-for-the-scraper";
    const api = await startApi({ env: { OTA_METRICS_TOKEN: token } });
    try {
      const ask = async (sent: string | undefined) => {
        const { status, body } = await api.as(sent)("GET", "/metrics");
        return `${status} ${body?.code ?? "ok"}`;
      };
      expect(await ask(undefined)).toBe("401 CREDENTIALS_MISSING");
      expect(await ask(api.operatorKey)).toBe("401 METRICS_TOKEN_INVALID");
      expect(await ask(token)).toBe("200 ok");
    } finally {
      await api.close();
    }
  });

  test("is not there where it is off, and everything else is", async () => {
    const api = await startApi({ env: { OTA_METRICS: "off" } });
    try {
      expect(await api.as(undefined)("GET", "/metrics")).toMatchObject({
        status: 404,
        body: { code: "ROUTE_NOT_FOUND" },
      });
      const device = await aDevice(api, { product: await aProduct(api) });
      expect((await device.call("POST", "/v1/check")).status).toBe(200);
    } finally {
      await api.close();
    }
  });
});
