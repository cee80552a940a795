import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

describe.skipIf(!hasPostgres)("operators' routes of rollouts", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi({ database: "postgres" });
  }, 180_000);
  afterAll(() => api.close());

  /** A released firmware that nobody is offered. */
  async function released() {
    const product = await aProduct(api);
    const { id: firmwareId } = await aFirmware(api, { product, release: false });
    const answer = await api.operator("POST", `/v1/firmware/${firmwareId}/release`);
    expect(answer.body).toMatchObject({ state: "released", rollouts: [] });
    return { product, firmwareId };
  }

  async function make(firmwareId: string, terms: object = {}) {
    const made = await api.operator("POST", `/v1/firmware/${firmwareId}/rollouts`, { json: terms });
    expect(made.status).toBe(201);
    const path = `/v1/rollouts/${made.body.id}`;
    expect(made.headers.get("location")).toBe(path);
    const step = async (name: string) => (await api.operator("POST", `${path}/${name}`)).body;
    return { path, step, made: made.body };
  }

  test("without a rollout a released firmware reaches nobody; with one that is started it does", async () => {
    const { product, firmwareId } = await released();
    const device = await aDevice(api, { product });
    const check = async () => (await device.call("POST", "/v1/check", { json: { version: "1.0.0" } })).body;
    expect(await check()).toMatchObject({ decision: "none", reason: "NO_FIRMWARE" });
    const { step } = await make(firmwareId);
    expect(await check()).toMatchObject({ decision: "none", reason: "NO_FIRMWARE" });
    await step("start");
    expect(await check()).toMatchObject({ decision: "update" });
    await step("pause");
    expect(await check()).toMatchObject({ decision: "none", reason: "ROLLOUT_PAUSED" });
    await step("resume");
    expect(await check()).toMatchObject({ decision: "update" });
    await step("stop");
    expect(await check()).toMatchObject({ decision: "none", reason: "NO_FIRMWARE" });
  });

  test("all terms are answered as they were sent, and found again by reading and listing", async () => {
    const { product, firmwareId } = await released();
    const terms = {
      ...{ channel: "beta", groups: ["lab"], hardwareRevisions: ["rev-b"], priority: 7, percentage: 12.34 },
      attributeFilter: { any: [{ attribute: "region", eq: "eu" }, { not: { attribute: "ram", in: [256, 512] } }] },
      window: { days: [6, 7], from: "22:05", to: "04:00" },
      ...{ maxConcurrent: 5, maxTotal: 50, successThreshold: 10 },
      errorThreshold: { failurePercentage: 2.5, minOutcomes: 20 },
      ...{ maxAttempts: 2, backoffSeconds: 60, timeoutsSeconds: { installing: 900, offered: null } },
      ...{ allowDowngrade: true, requiresConfirmation: true },
    };
    const { made, path } = await make(firmwareId, terms);
    expect(made).toMatchObject({ ...terms, state: "draft", firmware: { id: firmwareId, product } });
    expect((await api.operator("GET", path)).body).toEqual(made);
    expect((await api.operator("GET", `/v1/rollouts?product=${product}&state=draft`)).body.items).toEqual([made]);
    expect((await api.operator("GET", `/v1/firmware/${firmwareId}`)).body.rollouts).toEqual([made]);
  });

  test("phases set the percentage, and null takes terms away", async () => {
    const { firmwareId } = await released();
    const phases = [
      { percentage: 10, minSucceeded: 3, minSuccessPercentage: 90 },
      { percentage: 100, minSucceeded: 1, minSuccessPercentage: 0 },
    ];
    const { made, path } = await make(firmwareId, { phases, maxTotal: 9 });
    expect(made).toMatchObject({ phases, percentage: 10, phaseIndex: 0, counts: { live: 0, granted: 0 } });
    const changed = await api.operator("PATCH", path, { json: { phases: [], percentage: 50, maxTotal: null } });
    expect(changed.body).toMatchObject({ phases: [], percentage: 50, maxTotal: null });
  });

  test("the node of a filter that is wrong is named", async () => {
    const { firmwareId } = await released();
    const refused = await api.operator("POST", `/v1/firmware/${firmwareId}/rollouts`, {
      json: {
        attributeFilter: { all: [{ attribute: "a", exists: true }, { not: { attribute: "b", semver: ">=x.y" } }] },
      },
    });
    expect([refused.status, refused.body.code]).toEqual([422, "INVALID_FIELD"]);
    expect(refused.body.field).toBe("attributeFilter.all[1].not.semver");
  });

  test("what may not change while it runs is refused, and the percentage only grows", async () => {
    const { firmwareId } = await released();
    const { path, step } = await make(firmwareId, { percentage: 20 });
    await step("start");
    const change = async (json: object) => {
      const { status, body } = await api.operator("PATCH", path, { json });
      return [status, body.code ?? body.percentage];
    };
    expect(await change({ percentage: 30 })).toEqual([200, 30]);
    expect(await change({ percentage: 20 })).toEqual([409, "INVALID_STATE"]);
    expect(await change({ groups: ["lab"] })).toEqual([409, "INVALID_STATE"]);
    expect(await change({ maxTotal: 5 })).toEqual([409, "INVALID_STATE"]);
  });

  test("a device on the allow-list is offered what a rollout to nobody offers; taken off, it is not", async () => {
    const { product, firmwareId } = await released();
    const { path, step } = await make(firmwareId, { percentage: 0 });
    await step("start");
    const device = await aDevice(api, { product });
    const check = async () => (await device.call("POST", "/v1/check", { json: { version: "1.0.0" } })).body;
    const list = { json: { deviceIds: [device.id] } };
    expect(await check()).toMatchObject({ reason: "NOT_IN_ROLLOUT" });
    expect((await api.operator("POST", `${path}/devices`, list)).body).toEqual({ changed: 1 });
    expect((await api.operator("GET", `${path}/devices`)).body.items).toEqual([
      { id: device.id, serial: device.serial },
    ]);
    expect(await check()).toMatchObject({ decision: "update" });
    expect((await api.operator("POST", `${path}/devices/remove`, list)).body).toEqual({ changed: 1 });
    expect(await check()).toMatchObject({ reason: "NOT_IN_ROLLOUT" });
  });

  test("one that has reached its threshold is paused by itself", async () => {
    const { product, firmwareId } = await released();
    const { path, step } = await make(firmwareId, { errorThreshold: { failurePercentage: 50, minOutcomes: 1 } });
    await step("start");
    const device = await aDevice(api, { product });
    const { attempt } = (await device.call("POST", "/v1/check")).body;
    await device.call("POST", `/v1/attempts/${attempt.id}/reports`, { json: { state: "failed" } });
    await expect
      .poll(async () => (await api.operator("GET", path)).body, { timeout: 60_000, interval: 200 })
      .toMatchObject({ state: "paused", pausedBy: "error_threshold", counts: { live: 0, granted: 1, failed: 1 } });
  }, 90_000);

  test("the explanation names every rollout with its reason", async () => {
    const { product, firmwareId } = await released();
    const device = await aDevice(api, { product });
    const window = { days: [((new Date().getUTCDay() + 2) % 7) + 1], from: "00:00", to: "00:01" };
    const terms = [
      { groups: ["lab"] },
      { attributeFilter: { attribute: "a", exists: true } },
      { channel: "beta" },
      {},
      { window },
    ];
    for (const [priority, term] of terms.entries()) {
      const { step } = await make(firmwareId, { ...term, priority });
      await step("start");
    }
    const { body } = await api.operator("GET", `/v1/devices/${device.id}/explanation`);
    expect(body.device).toMatchObject({ groups: [], attributes: {}, timeZone: "UTC" });
    expect(Date.parse(body.candidates[0].opensAt)).toBeGreaterThan(Date.now());
    expect(body.decision).toMatchObject({ decision: "update", firmwareId });
    expect(body.candidates.map(({ priority, reason }: Record<string, unknown>) => [priority, reason])).toEqual([
      [4, "WINDOW_CLOSED"],
      [3, null],
      [2, "NOT_IN_ROLLOUT"],
      [1, "NOT_IN_ROLLOUT"],
      [0, "NOT_IN_ROLLOUT"],
    ]);
  });
});
