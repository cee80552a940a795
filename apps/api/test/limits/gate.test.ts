import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { scrape } from "../support/metrics.ts";
import { type Caller, startApi, type TestApi } from "../support/start-api.ts";

describe.skipIf(!hasPostgres)("rate limits of the service", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi({
      trustProxy: "loopback",
      env: { OTA_CHECK_LIMIT_PER_MINUTE: "5", OTA_FAILED_AUTH_LIMIT_PER_MINUTE: "3" },
    });
  });
  afterAll(() => api.close());

  /** Statuses of so many requests, one after the other. */
  async function statuses(times: number, ask: (index: number) => ReturnType<Caller>): Promise<number[]> {
    const answers: number[] = [];
    for (let i = 0; i < times; i++) answers.push((await ask(i)).status);
    return answers;
  }

  const wrongToken = (index: number) => `${index}`.padStart(43, "x");

  /** A check with a wrong token, by a client that a trusted proxy names. */
  const failFrom = (client: string, index: number) =>
    api.as(wrongToken(index))("POST", "/v1/check", { headers: { "x-forwarded-for": client } });

  test("a device that asks too often is told to wait; its reports and downloads, and other devices, are served", async () => {
    const product = await aProduct(api);
    const firmware = await aFirmware(api, { product });
    const [eager, other] = [await aDevice(api, { product }), await aDevice(api, { product })];
    const { body: offer } = await eager.call("POST", "/v1/check", { json: { version: "1.0.0" } });
    const answers = await statuses(24, () => eager.call("POST", "/v1/check"));
    // A minute may have ended in between; then another began.
    const passed = answers.filter((status) => status === 200).length + 1;
    expect(passed).toBeGreaterThanOrEqual(5);
    expect(passed).toBeLessThanOrEqual(10);
    const refused = answers.filter((status) => status === 429).length;
    expect(refused).toBe(25 - passed);

    const path = `/v1/attempts/${offer.attempt.id}/reports`;
    const reports = await statuses(20, () => eager.call("POST", path, { json: { state: "downloading" } }));
    expect(new Set(reports)).toEqual(new Set([200]));
    const downloads = await statuses(20, () => eager.call("GET", `/v1/firmware/${firmware.id}/artifact`));
    expect(new Set(downloads)).toEqual(new Set([200]));
    expect((await other.call("POST", "/v1/check")).status).toBe(200);
    const figures = await scrape(api.as(undefined));
    expect(figures.get('ota_rate_limited_total{limit="check"}')).toBe(refused);
  });

  test("the answer says when to come back", async () => {
    const device = await aDevice(api, { product: await aProduct(api) });
    for (let i = 0; i < 11; i++) {
      const { status, headers, body } = await device.call("POST", "/v1/check");
      if (status === 200) continue;
      const seconds = Number(headers.get("retry-after"));
      expect({ status, code: body.code, seconds: body.retryAfterSeconds }).toEqual({
        ...{ status: 429, code: "RATE_LIMITED", seconds },
      });
      expect(seconds).toSatisfy((value: number) => value >= 1 && value <= 60);
      return;
    }
    expect.fail("no check was refused");
  });

  test("an address with too many wrong tokens is shut out; another one, and the proxy's own, are not", async () => {
    const answers = await statuses(12, (index) => failFrom("203.0.113.1", index));
    const failed = answers.filter((status) => status === 401).length;
    expect(failed).toBeGreaterThanOrEqual(3);
    expect(failed).toBeLessThanOrEqual(6);
    expect(answers.filter((status) => status === 429).length).toBe(12 - failed);
    expect((await failFrom("203.0.113.2", 0)).status).toBe(401);
    const direct = await statuses(12, (index) => api.as(wrongToken(index))("POST", "/v1/check"));
    expect(new Set(direct)).toEqual(new Set([401]));
  });

  test("from an address that is shut out, operators are refused, and a device's report is stored all the same", async () => {
    const product = await aProduct(api);
    await aFirmware(api, { product });
    const device = await aDevice(api, { product });
    const { body: offer } = await device.call("POST", "/v1/check", { json: { version: "1.0.0" } });
    const headers = { "x-forwarded-for": "203.0.113.9" };
    const path = `/v1/attempts/${offer.attempt.id}/reports`;
    let refused: number | undefined;
    for (let i = 0; i < 12 && refused !== 429; i++) {
      await failFrom("203.0.113.9", i);
      refused = (await api.operator("GET", "/v1/devices", { headers })).status;
    }
    expect(refused).toBe(429);
    expect((await device.call("POST", path, { json: { state: "failed" }, headers })).status).toBe(200);
  });

  test("one wrong token, however often it comes, shuts out nobody", async () => {
    const answers = await statuses(30, () => failFrom("203.0.113.20", 0));
    // After five of them it is its own limit that it meets.
    expect(new Set(answers)).toEqual(new Set([401, 429]));
    expect((await failFrom("203.0.113.20", 99)).status).toBe(401);
  });
});
