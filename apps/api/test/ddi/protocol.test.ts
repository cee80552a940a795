import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";
import { aDdiDevice, anOfferedDevice, type DdiCall, type DdiDevice, ddiCaller, feedback } from "./ddi-client.ts";

/** One request in one situation. `:id` is the action's, `:file` that of the artifact. */
type Row = readonly [status: number, method: string, path: string, init?: DdiCall];

const sent = (json: unknown): DdiCall => ({ json });
const accepting = (accept: string): DdiCall => ({ headers: { accept } });
const typed = (type: string): DdiCall => ({ text: "{}", headers: { "content-type": type } });
const fed = (...args: Parameters<typeof feedback>): DdiCall => sent(feedback(...args));

const DEPLOYMENT = "/deploymentBase/:id/feedback";
const CANCEL = "/cancelAction/:id/feedback";
const CONFIRM = "/confirmationBase/:id/feedback";

/** hawkBit's resources with the statuses that each can answer, by what the device's action is at that time. */
const ROWS: Readonly<Record<Situation, readonly Row[]>> = {
  "whatever the action": [
    [200, "GET", ""],
    [200, "HEAD", ""],
    [200, "GET", "", accepting("application/json;charset=utf-8")],
    [200, "GET", "", accepting("text/html, application/*;q=0.5")],
    [405, "POST", "", sent({})],
    [406, "GET", "", accepting("application/cbor")],
    [406, "GET", "", accepting("text/html")],
    [406, "GET", "", accepting("application/json;q=0")],
    [404, "GET", "/nothing"],
    [404, "PUT", "/installedBase", sent({ name: "os", version: "1" })],
    [200, "PUT", "/configData", sent({ id: "", time: "20261129T164601", status: {}, data: { a: "1" } })],
    [200, "PUT", "/configData", sent({ mode: "replace", data: { a: "1", b: null } })],
    [200, "PUT", "/configData", sent({ mode: "remove", data: { a: "" } })],
    [400, "PUT", "/configData", sent({ data: {} })],
    [400, "PUT", "/configData", sent({ mode: "some", data: { a: "1" } })],
    [400, "PUT", "/configData", sent({ data: { ["k".repeat(129)]: "1" } })],
    [400, "PUT", "/configData", { text: "{" }],
    [415, "PUT", "/configData", typed("application/cbor")],
    [405, "GET", "/configData"],
    [
      429,
      "PUT",
      "/configData",
      sent({ data: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`k${n}`, "1"])) }),
    ],
    [400, "GET", "/deploymentBase/one"],
    [404, "GET", "/deploymentBase/2147483647"],
    [404, "GET", "/deploymentBase/9999999999"],
    [404, "POST", "/deploymentBase/2147483647/feedback", fed("closed", "success")],
    [404, "GET", "/cancelAction/2147483647"],
    [404, "GET", "/installedBase/2147483647"],
    [404, "GET", "/softwaremodules/7/artifacts"],
    [404, "GET", "/softwaremodules/7/artifacts/fw.swu"],
    [200, "GET", "/confirmationBase"],
    [404, "GET", "/confirmationBase/2147483647"],
    [405, "GET", "/confirmationBase/activateAutoConfirm"],
    [200, "POST", "/confirmationBase/activateAutoConfirm"],
    [409, "POST", "/confirmationBase/activateAutoConfirm", sent({ initiator: "me" })],
    [200, "POST", "/confirmationBase/deactivateAutoConfirm"],
    [200, "POST", "/confirmationBase/deactivateAutoConfirm"],
  ],
  offered: [
    [404, "GET", "/cancelAction/:id"],
    [404, "POST", CANCEL, fed("closed", "success")],
    [404, "GET", "/installedBase/:id"],
    [404, "GET", "/confirmationBase/:id"],
    [404, "POST", CONFIRM, sent({ confirmation: "confirmed" })],
    [200, "GET", "/deploymentBase/:id?c=-5"],
    [200, "GET", "/softwaremodules/:module/artifacts"],
    [200, "HEAD", "/softwaremodules/:module/artifacts/:file"],
    [206, "GET", "/softwaremodules/:module/artifacts/:file", { headers: { range: "bytes=100-" } }],
    [412, "GET", "/softwaremodules/:module/artifacts/:file", { headers: { "if-match": '"other"' } }],
    [416, "GET", "/softwaremodules/:module/artifacts/:file", { headers: { range: "bytes=1000-" } }],
    [200, "GET", "/softwaremodules/:module/artifacts/:file", accepting("text/html")],
    [404, "GET", "/softwaremodules/:module/artifacts/other.swu"],
    [200, "GET", "/softwaremodules/:module/artifacts/:file.MD5SUM"],
    [400, "POST", DEPLOYMENT, { text: "{" }],
    [400, "POST", DEPLOYMENT, fed("exploded", "none")],
    [400, "POST", DEPLOYMENT, sent({ status: { execution: "closed" } })],
    [415, "POST", DEPLOYMENT, typed("application/cbor")],
    [400, "POST", DEPLOYMENT, typed("text/plain")],
    [200, "POST", DEPLOYMENT, { ...fed("proceeding"), headers: { "content-type": "text/plain", accept: "text/html" } }],
    [405, "GET", DEPLOYMENT],
    ...(["proceeding", "scheduled", "resumed", "rejected", "download", "downloaded"] as const).map(
      (execution) => [200, "POST", DEPLOYMENT, fed(execution)] as const,
    ),
    [200, "POST", DEPLOYMENT, fed("closed", "none")],
  ],
  succeeded: [
    [200, "GET", "/deploymentBase/:id"],
    [200, "GET", "/installedBase/:id?actionHistory=3"],
    [410, "POST", DEPLOYMENT, fed("proceeding")],
    [200, "POST", DEPLOYMENT, fed("closed", "success")],
    [200, "POST", DEPLOYMENT, fed("closed", "failure")],
    [404, "POST", CANCEL, fed("closed", "success")],
    [410, "POST", CONFIRM, sent({ confirmation: "confirmed" })],
    [404, "GET", "/cancelAction/:id"],
  ],
  cancelling: [
    [404, "GET", "/deploymentBase/:id"],
    [404, "GET", "/installedBase/:id"],
    [200, "GET", "/cancelAction/:id"],
    [200, "POST", DEPLOYMENT, fed("proceeding")],
    [200, "POST", CANCEL, fed("proceeding")],
    [400, "POST", CANCEL, { text: "" }],
    [404, "POST", CONFIRM, sent({ confirmation: "confirmed" })],
    [200, "POST", CANCEL, fed("canceled")],
    [404, "GET", "/cancelAction/:id"],
    [200, "POST", CANCEL, fed("closed", "success")],
    [410, "POST", DEPLOYMENT, fed("proceeding")],
    [404, "GET", "/installedBase/:id"],
    [404, "GET", "/softwaremodules/:module/artifacts/:file"],
  ],
  withdrawn: [
    [404, "GET", "/deploymentBase/:id"],
    [410, "GET", "/softwaremodules/:module/artifacts/:file"],
  ],
  "waiting for consent": [
    [404, "GET", "/deploymentBase/:id"],
    [404, "POST", DEPLOYMENT, fed("proceeding")],
    [404, "GET", "/installedBase/:id"],
    [200, "GET", "/confirmationBase/:id?actionHistory=1"],
    [400, "POST", CONFIRM, sent({ confirmation: "perhaps" })],
    [200, "POST", CONFIRM, sent({ confirmation: "denied", details: ["not now"] })],
    [200, "GET", "/confirmationBase/:id"],
    [200, "POST", CONFIRM, sent({ confirmation: "confirmed", code: 1 })],
    [404, "GET", "/confirmationBase/:id"],
    [200, "POST", CONFIRM, sent({ confirmation: "confirmed" })],
    [200, "GET", "/deploymentBase/:id"],
  ],
};

type Situation = "whatever the action" | "offered" | "succeeded" | "cancelling" | "withdrawn" | "waiting for consent";

interface Subject {
  readonly device: DdiDevice;
  readonly id?: number;
  readonly module?: string;
}

describe.skipIf(!hasPostgres)("DDI's statuses", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  async function begun(): Promise<Required<Subject>> {
    const device = await anOfferedDevice(api);
    return { device, module: device.firmware.id, id: await device.actionId("deploymentBase") };
  }

  const SET_UP: Readonly<Record<Situation, () => Promise<Subject>>> = {
    "whatever the action": async () => ({ device: await aDdiDevice(api) }),
    offered: begun,
    succeeded: async () => {
      const subject = await begun();
      await subject.device.ddi("POST", `/deploymentBase/${subject.id}/feedback`, fed("closed", "success"));
      return subject;
    },
    cancelling: async () => {
      const subject = await begun();
      await subject.device.ddi("GET", `/deploymentBase/${subject.id}`);
      await api.operator("POST", `/v1/upgrades/${(await subject.device.upgrade()).id}/cancel`);
      expect(await subject.device.actionId("cancelAction")).toBe(subject.id);
      return subject;
    },
    withdrawn: async () => {
      const subject = await begun();
      await api.operator("POST", `/v1/firmware/${subject.module}/withdraw`);
      return subject;
    },
    "waiting for consent": async () => {
      const device = await aDdiDevice(api);
      const { id: module } = await aFirmware(api, { product: device.product, release: false });
      await api.operator("POST", `/v1/firmware/${module}/release`, { json: { startRollout: false } });
      const rollout = await api.operator("POST", `/v1/firmware/${module}/rollouts`, {
        json: { requiresConfirmation: true },
      });
      await api.operator("POST", `/v1/rollouts/${rollout.body.id}/start`);
      return { device, module, id: await device.actionId("confirmationBase") };
    },
  };

  test.each(Object.entries(ROWS) as [Situation, readonly Row[]][])(
    "are the protocol's: %s",
    async (situation, rows) => {
      const { device, id, module } = await SET_UP[situation]();
      const { body: firmware } =
        module === undefined ? { body: {} } : await api.operator("GET", `/v1/firmware/${module}`);
      const file = encodeURIComponent(firmware.artifact?.fileName ?? "none");
      const answered: string[] = [];
      for (const [, method, path, init] of rows) {
        const there = path.replace(":id", String(id)).replace(":module", String(module)).replace(":file", file);
        const { status, headers, body } = await device.ddi(method, there, init);
        answered.push(`${status} ${method} ${path}`);
        if (status >= 400 && method !== "HEAD")
          expect(body, path).toMatchObject({ errorCode: expect.stringMatching(/^hawkbit\.server\.error\./) });
        if (status === 405) expect(headers.get("allow")).toMatch(/GET|POST|PUT/);
      }
      expect(answered).toEqual(rows.map(([status, method, path]) => `${status} ${method} ${path}`));
    },
  );

  test("tell a client that has the answer already 304, whatever its time to sleep is by now", async () => {
    const { ddi } = await anOfferedDevice(api);
    const first = await ddi("GET", "");
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"0[0-9a-f]{32}"$/);
    await vi.waitFor(async () => expect((await ddi("GET", "")).body.config).not.toEqual(first.body.config), {
      timeout: 20_000,
      interval: 200,
    });
    const again = await ddi("GET", "", { headers: { "if-none-match": etag } });
    expect([again.status, again.headers.get("etag"), again.bytes.length]).toEqual([304, etag, 0]);
    await ddi("PUT", "/configData", sent({ data: { a: "1" } }));
    expect((await ddi("GET", "", { headers: { "if-none-match": etag } })).status).toBe(200);
  });

  test("are 404 for another tenant and another device's action, and DEFAULT is DEFAULT in any case", async () => {
    const { id, device } = await begun();
    const { serial, token } = device;
    const authorization = `TargetToken ${token}`;
    for (const [tenant, status] of [
      ["default", 200],
      ["dEfAuLt", 200],
      ["OTHER", 404],
    ] as const) {
      const { status: answered } = await device.ddi("GET", `${api.url}/${tenant}/controller/v1/${serial}`);
      expect([tenant, answered]).toEqual([tenant, status]);
    }
    const other = await aDdiDevice(api);
    expect((await other.ddi("GET", `/deploymentBase/${id}`)).status).toBe(404);
    expect((await other.ddi("POST", `/deploymentBase/${id}/feedback`, fed("closed", "failure"))).status).toBe(404);
    expect((await device.upgrade()).attempt.state).toBe("offered");
    // Decoded once: what is still encoded then is part of the id.
    const encoded = ddiCaller(api, `%${serial.charCodeAt(0).toString(16)}${serial.slice(1)}`, authorization);
    expect((await encoded("GET", "")).status).toBe(200);
    const twice = ddiCaller(api, `%25${serial.charCodeAt(0).toString(16)}${serial.slice(1)}`, authorization);
    expect((await twice("GET", "")).status).toBe(401);
  });

  test("of an id that no device can have are 400 or 401, never a registration", async () => {
    const product = await aProduct(api);
    const { body } = await api.operator("POST", `/v1/products/${product}/gateway-tokens`, { json: { name: "gate" } });
    for (const [id, status] of [
      ["a%2Fb", 400],
      ["d%C3%A9v", 400],
      ["a%20b", 400],
      ["x%2541", 400],
      ["%zz", 400],
      ["x".repeat(257), 400],
      ["a:b", 200],
      ["x".repeat(256), 200],
    ] as const) {
      const answer = await ddiCaller(api, id, `GatewayToken ${body.token}`)("GET", "");
      expect([id, answer.status]).toEqual([id, status]);
    }
    const { body: list } = await api.operator("GET", `/v1/devices?product=${product}`);
    const serials = list.items.map(({ serial }: { serial: string }) => serial);
    expect(serials.sort()).toEqual(["a:b", "x".repeat(256)]);
  });
});
