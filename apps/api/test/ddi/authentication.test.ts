import { hashToken, schema } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config.ts";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";
import { aDdiDevice, type DdiTestAnswer, ddiCaller, feedback } from "./ddi-client.ts";

const GATEWAY_TOKEN = "gateway-token-of-the-proxy-0123456789";

describe.skipIf(!hasPostgres)("who may speak for a DDI device", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  const aGateway = async (product: string): Promise<string> =>
    (await api.operator("POST", `/v1/products/${product}/gateway-tokens`, { json: { name: "gate" } })).body.token;

  function expectRefused({ status, bytes, headers }: DdiTestAnswer): void {
    expect([status, bytes.length, headers.get("www-authenticate")]).toEqual([401, 0, null]);
  }

  test("is nobody without a token that fits, on every resource, and is told no more than that", async () => {
    const { serial, token } = await aDdiDevice(api);
    const wrong = [
      undefined,
      `TargetToken ${token}x`,
      `Bearer ${token}`,
      `targettoken ${token}`,
      `TargetToken  ${token}`,
      `GatewayToken ${token}`,
    ];
    for (const authorization of wrong) expectRefused(await ddiCaller(api, serial, authorization)("GET", ""));
    const ddi = ddiCaller(api, serial, `TargetToken ${token}x`);
    const json = feedback("closed", "success");
    expectRefused(await ddi("PUT", "/configData", { json: { data: { a: "1" } } }));
    expectRefused(await ddi("GET", "/deploymentBase/1"));
    expectRefused(await ddi("POST", "/deploymentBase/1/feedback", { json }));
    expectRefused(await ddi("POST", "/deploymentBase/1/feedback", { text: "no JSON" }));
    expectRefused(await ddi("GET", "/cancelAction/1"));
    expectRefused(await ddi("POST", "/cancelAction/1/feedback", { json }));
    expectRefused(await ddi("GET", "/installedBase/1"));
    expectRefused(await ddi("GET", "/softwaremodules/1/artifacts"));
    expectRefused(await ddi("GET", "/softwaremodules/1/artifacts/fw.swu"));
    expectRefused(await ddi("GET", "/confirmationBase"));
    expectRefused(await ddi("GET", "/confirmationBase/1"));
    expectRefused(await ddi("POST", "/confirmationBase/1/feedback", { json: { confirmation: "confirmed" } }));
    expectRefused(await ddi("POST", "/confirmationBase/activateAutoConfirm"));
    expectRefused(await ddi("POST", "/confirmationBase/deactivateAutoConfirm"));
  });

  test("is no device with the token of another, and nothing is opened for either", async () => {
    const product = await aProduct(api);
    await aFirmware(api, { product });
    const [one, other] = [await aDevice(api, { product }), await aDevice(api, { product })];
    const ddi = ddiCaller(api, other.serial, `TargetToken ${one.token}`);
    expectRefused(await ddi("GET", ""));
    expectRefused(await ddi("PUT", "/configData", { json: { data: { a: "1" } } }));
    for (const { id } of [one, other]) {
      expect((await api.operator("GET", `/v1/upgrades?deviceId=${id}`)).body.items).toEqual([]);
    }
  });

  test("is a gateway for devices without a token of their own, which its first poll registers", async () => {
    const product = await aProduct(api, { confirmBy: "report" });
    await aFirmware(api, { product });
    const authorization = `GatewayToken ${await aGateway(product)}`;
    const ddi = ddiCaller(api, "new-1", authorization);
    expect((await ddi("PUT", "/configData", { json: { data: { a: "1" } } })).status).toBe(404);
    const polls = await Promise.all(Array.from({ length: 5 }, () => ddi("GET", "")));
    expect(polls.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const { href } = polls[0]?.body._links.deploymentBase ?? {};
    expect((await ddi("POST", `${href}/feedback`, { json: feedback("closed", "success") })).status).toBe(200);
    const { items } = (await api.operator("GET", `/v1/devices?product=${product}`)).body;
    expect(items).toMatchObject([{ serial: "new-1", registeredBy: "gateway" }]);

    const { serial } = await aDevice(api, { product });
    expectRefused(await ddiCaller(api, serial, authorization)("GET", ""));
  });

  test("is no proxy's word as long as none is configured", async () => {
    const { serial } = await aDdiDevice(api);
    const headers = { "x-controller-id": serial, "x-authority": "ca-1" };
    expectRefused(await ddiCaller(api, serial, undefined)("GET", "", { headers }));
  });
});

describe.skipIf(!hasPostgres)("header authentication", () => {
  async function behind(trustProxy: string): Promise<TestApi> {
    const api = await startApi({
      trustProxy,
      env: { OTA_DDI_AUTHORITIES: `CN=Other=${"x".repeat(20)},ca-1=${GATEWAY_TOKEN}` },
    });
    const product = await aProduct(api);
    await api.operator("POST", `/v1/products/${product}/gateway-tokens`, { json: { name: "proxy" } });
    await api.db.update(schema.gatewayTokens).set({ tokenHash: hashToken(GATEWAY_TOKEN) });
    return api;
  }

  test("takes a trusted proxy's word for the device that the URL names", async () => {
    const api = await behind("loopback");
    const poll = async (headers: Readonly<Record<string, string>>) =>
      (await ddiCaller(api, "dev-1", undefined)("GET", "", { headers })).status;
    try {
      const id = { "x-controller-id": "dev-1" };
      expect(await poll({ ...id, "x-authority": "ca-9; CA-1" })).toBe(200);
      expect(await poll({ ...id, "x-authority-0": "root", "x-authority-1": "ca-1" })).toBe(200);
      expect(await poll({ ...id, "x-authority": "ca-9" })).toBe(401);
      expect(await poll(id)).toBe(401);
      expect(await poll({ "x-controller-id": "dev-2", "x-authority": "ca-1" })).toBe(401);
    } finally {
      await api.close();
    }
  });

  test("takes nobody else's", async () => {
    const api = await behind("10.0.0.0/8");
    const headers = { "x-controller-id": "dev-1", "x-authority": "ca-1" };
    const { status } = await ddiCaller(api, "dev-1", undefined)("GET", "", { headers });
    await api.close();
    expect(status).toBe(401);
  });

  test("is configured as pairs, beside a proxy that is trusted, and its tokens are not shown", () => {
    const read = (OTA_DDI_AUTHORITIES: string, TRUST_PROXY = "loopback") =>
      readConfig({ OTA_DDI_AUTHORITIES, TRUST_PROXY }).ddiAuthorities;
    expect([...read(`CN=A=${GATEWAY_TOKEN}, b=${GATEWAY_TOKEN}`).keys()]).toEqual(["cn=a", "b"]);
    expect(() => read(`a=${GATEWAY_TOKEN}`, "")).toThrow(/TRUST_PROXY is required/);
    for (const wrong of ["a", `a=${GATEWAY_TOKEN},A=${GATEWAY_TOKEN}`, "a=short", `a=${GATEWAY_TOKEN},`]) {
      expect(() => read(wrong)).toThrow(/^(?!.*gateway-token-of).*OTA_DDI_AUTHORITIES must be/s);
    }
  });
});
