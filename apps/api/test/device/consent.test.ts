import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

describe.skipIf(!hasPostgres)("consent over the native API", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  /** A device whose check is answered with a question. */
  async function aQuestion() {
    const product = await aProduct(api);
    const firmware = await aFirmware(api, { product, release: false });
    await api.operator("POST", `/v1/firmware/${firmware.id}/release`, { json: { startRollout: false } });
    const { body: rollout } = await api.operator("POST", `/v1/firmware/${firmware.id}/rollouts`, {
      json: { requiresConfirmation: true },
    });
    await api.operator("POST", `/v1/rollouts/${rollout.id}/start`);
    const device = await aDevice(api, { product });
    const check = async () => (await device.call("POST", "/v1/check")).body;
    const asked = await check();
    expect(asked).toMatchObject({ decision: "update", attempt: { state: "awaiting_confirmation" } });
    const report = (state: string) =>
      device.call("POST", `/v1/attempts/${asked.attempt.id}/reports`, { json: { state } });
    const fetchFile = () => device.call("GET", `/v1/firmware/${firmware.id}/artifact`);
    return { ...device, firmware, asked, check, report, fetchFile };
  }

  test("is needed before the file: until then there is no URL, and the token is refused", async () => {
    const { firmware, asked, check, report, fetchFile } = await aQuestion();
    expect(asked.firmware).toMatchObject({ version: "2.0.0", sizeBytes: 1000, sha256: firmware.sha256 });
    expect(asked.firmware).not.toHaveProperty("url");
    expect(await fetchFile()).toMatchObject({ status: 409, body: { code: "CONFIRMATION_REQUIRED" } });

    // Neither a refusal nor progress without consent is consent.
    for (const state of ["denied", "downloading"]) {
      await report(state);
      expect((await check()).firmware).not.toHaveProperty("url");
      expect((await fetchFile()).status).toBe(409);
    }

    expect(await report("confirmed")).toMatchObject({ status: 200, body: { attempt: { state: "offered" } } });
    const confirmed = await check();
    expect(confirmed.attempt).toMatchObject({ id: asked.attempt.id, state: "offered" });
    expect((await fetchFile()).bytes.equals(firmware.bytes)).toBe(true);
    expect((await api.as(undefined)("GET", confirmed.firmware.url)).bytes.equals(firmware.bytes)).toBe(true);
  });

  test("that stands for all there will be answers at once", async () => {
    const { serial, token, check, fetchFile } = await aQuestion();
    const auto = await fetch(`${api.url}/DEFAULT/controller/v1/${serial}/confirmationBase/activateAutoConfirm`, {
      method: "POST",
      headers: { authorization: `TargetToken ${token}` },
    });
    expect(auto.status).toBe(200);
    expect((await check()).firmware.url).toMatch(/signature=/);
    expect((await fetchFile()).status).toBe(200);
  });
});
