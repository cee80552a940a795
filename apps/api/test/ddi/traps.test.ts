import { schema } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";
import { aDdiDevice, anOfferedDevice, ddiCaller, feedback } from "./ddi-client.ts";

/** The rows of what clients do when things go wrong that a server can meet; the others are in the files beside this one. */
describe.skipIf(!hasPostgres)("traps of DDI clients", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  test("C4: an action that has ended is linked no more, so that no client polls and posts for ever", async () => {
    const { ddi, actionId } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    await ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "failure") });
    expect((await ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("proceeding") })).status).toBe(410);
    expect(Object.keys((await ddi("GET", "")).body._links)).toEqual(["configData"]);
  });

  test("C6, C8: an action's id is a positive int32 as text, and nothing is ever to be skipped", async () => {
    const { ddi, actionId } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const { body } = await ddi("GET", `/deploymentBase/${id}`);
    expect(body.id).toBe(String(id));
    expect(id > 0 && id < 2 ** 31).toBe(true);
    expect([body.deployment.download, body.deployment.update]).toEqual(["forced", "forced"]);
  });

  test("C7: the time to sleep keeps below 24 hours, however long the product's interval", async () => {
    const product = await aProduct(api, { pollIntervalSeconds: 86_399 });
    for (const _ of Array(5)) {
      const { serial, token } = await aDevice(api, { product });
      const { body } = await ddiCaller(api, serial, `TargetToken ${token}`)("GET", "");
      expect(body.config.polling.sleep).toMatch(/^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d$/);
    }
  });

  test("C9: a cut download goes on where it was, and is told by 416 that it has everything", async () => {
    const { ddi, firmware, actionId } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const [artifact] = (await ddi("GET", `/deploymentBase/${id}`)).body.deployment.chunks[0].artifacts;
    const { href } = artifact._links.download;
    const head = await ddi("HEAD", href);
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "1000"]);
    expect(head.headers.get("last-modified")).toMatch(/GMT$/);
    const rest = await ddi("GET", href, { headers: { range: "bytes=400-" } });
    expect([rest.status, rest.headers.get("content-range")]).toEqual([206, "bytes 400-999/1000"]);
    expect(rest.bytes.equals(firmware.bytes.subarray(400))).toBe(true);
    const end = await ddi("GET", href, { headers: { range: "bytes=1000-" } });
    expect([end.status, end.headers.get("content-range")]).toEqual([416, "bytes */1000"]);
    const etag = head.headers.get("etag") ?? "";
    for (const tag of [etag, etag.replaceAll('"', "")]) {
      expect((await ddi("HEAD", href, { headers: { "if-match": tag } })).status).toBe(200);
    }
  });

  test("C10, C11: a file on another host is redirected to, and linked by its address here alone", async () => {
    const device = await aDdiDevice(api);
    const sourceUrl = "https://files.example/fw.swu?signature=s";
    const registered = await api.operator("POST", `/v1/products/${device.product}/firmware/by-url`, {
      json: { version: "2.0.0", sourceUrl, sizeBytes: 5, sha256: "ab".repeat(32) },
    });
    expect(registered.status).toBe(201);
    await api.operator("POST", `/v1/firmware/${registered.body.id}/release`, { json: { startRollout: true } });
    const id = await device.actionId("deploymentBase");
    const { body } = await device.ddi("GET", `/deploymentBase/${id}`);
    expect(JSON.stringify(body)).not.toContain("files.example");
    const answer = await device.ddi("GET", body.deployment.chunks[0].artifacts[0]._links["download-http"].href);
    expect([answer.status, answer.headers.get("location")]).toEqual([302, sourceUrl]);
  });

  test("C12: a cancellation is linked before anything else, and ends with the client's word", async () => {
    const { ddi, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    await ddi("GET", `/deploymentBase/${id}`);
    await api.operator("POST", `/v1/upgrades/${(await upgrade()).id}/cancel`);
    const { _links } = (await ddi("GET", "")).body;
    expect(Object.keys(_links)).toEqual(["cancelAction", "configData"]);
    const { body } = await ddi("GET", _links.cancelAction.href);
    expect(body).toEqual({ id: String(id), cancelAction: { stopId: String(id) } });
    const json = feedback("closed", "success");
    expect((await ddi("POST", `/cancelAction/${body.cancelAction.stopId}/feedback`, { json })).status).toBe(200);
    expect((await upgrade()).attempt.state).toBe("cancelled");
  });

  test("a client that has finished before it hears of a cancellation has succeeded", async () => {
    const { ddi, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    await ddi("GET", `/deploymentBase/${id}`);
    await api.operator("POST", `/v1/upgrades/${(await upgrade()).id}/cancel`);
    expect(await actionId("cancelAction")).toBe(id);
    const json = feedback("closed", "success");
    expect((await ddi("POST", `/deploymentBase/${id}/feedback`, { json })).status).toBe(200);
    expect((await upgrade()).attempt.state).toBe("succeeded");
  });

  test("a client that refuses a cancellation goes on, and its success counts", async () => {
    const { ddi, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    await ddi("GET", `/deploymentBase/${id}`);
    await api.operator("POST", `/v1/upgrades/${(await upgrade()).id}/cancel`);
    await ddi("POST", `/cancelAction/${id}/feedback`, { json: feedback("rejected") });
    expect(await actionId("deploymentBase")).toBe(id);
    await ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "success") });
    expect((await upgrade()).attempt.state).toBe("succeeded");
  });

  test("C16: feedback of a megabyte with any characters in its log is taken, and what is kept of it is cut", async () => {
    const { ddi, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const line = `\u0001${"x".repeat(20_000)}`;
    const log = Array(60).fill(`"${line}"`).join(",");
    const text = `{"status":{"execution":"closed","result":{"finished":"failure"},"details":[${log},"\ttail\n"]}}`;
    expect(text.length).toBeGreaterThan(1_000_000);
    expect((await ddi("POST", `/deploymentBase/${id}/feedback`, { text })).status).toBe(200);
    const event = (await upgrade()).attempts[0].events.at(-1);
    expect(event).toMatchObject({ reportedState: "failed", message: " tail " });
    expect([event.details.length, event.details[0].length]).toEqual([50, 500]);
  });

  test("a final word is taken however much has been told before", async () => {
    const { ddi, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const say = (...args: Parameters<typeof feedback>) =>
      ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback(...args) });
    await api.db.update(schema.upgradeAttempts).set({ lastSeq: 1_000 }).where(eq(schema.upgradeAttempts.id, id));
    expect((await say("proceeding")).status).toBe(200);
    expect((await say("resumed")).status).toBe(200);
    expect((await say("closed", "success")).status).toBe(200);
    const { events } = (await upgrade()).attempts[0];
    expect(events.map(({ seq }: { seq: number }) => seq)).toEqual([1, 1_001, 1_002]);
    expect(events.at(-1)).toMatchObject({ toState: "succeeded" });
  });
});
