import { createHash } from "node:crypto";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";
import { aDdiDevice, anOfferedDevice, feedback } from "./ddi-client.ts";

describe.each(["postgres", "embedded"] as const)("a deployment over DDI on %s", { skip: !hasPostgres }, (database) => {
  let api: TestApi;

  beforeAll(async () => {
    // A new embedded database takes some seconds of computing, on a busy machine many.
    api = await startApi({ database });
  }, 120_000);
  afterAll(() => api.close());

  test("leads a device from its poll to an upgrade that has succeeded", async () => {
    const { ddi, firmware, serial, product, upgrade } = await anOfferedDevice(api);
    const poll = await ddi("GET", "");
    expect(poll.headers.get("content-type")).toBe("application/hal+json");
    expect(poll.body.config.polling.sleep).toMatch(/^00:0\d:\d\d$/);
    const { deploymentBase, ...others } = poll.body._links;
    expect(Object.keys(others)).toEqual(["configData"]);

    const deployment = await ddi("GET", deploymentBase.href);
    const { id, ...body } = deployment.body;
    expect(id).toMatch(/^\d+$/);
    const file = `${api.url}/DEFAULT/controller/v1/${serial}/softwaremodules/${firmware.id}/artifacts/firmware.bin`;
    const hashOf = (name: string) => createHash(name).update(firmware.bytes).digest("hex");
    expect(body).toEqual({
      deployment: {
        ...{ download: "forced", update: "forced" },
        chunks: [
          {
            ...{ part: "bApp", version: "2.0.0", name: product },
            artifacts: [
              {
                ...{ filename: expect.any(String), size: 1000 },
                hashes: { sha1: hashOf("sha1"), md5: hashOf("md5"), sha256: firmware.sha256 },
                _links: {
                  ...{ download: { href: expect.any(String) }, "download-http": { href: expect.any(String) } },
                  ...{ md5sum: { href: expect.any(String) }, "md5sum-http": { href: expect.any(String) } },
                },
              },
            ],
          },
        ],
      },
    });
    const [artifact] = body.deployment.chunks[0].artifacts;
    expect(artifact._links.download.href).toBe(file.replace("firmware.bin", artifact.filename));

    const report = (json: object) => ddi("POST", `/deploymentBase/${id}/feedback`, { json });
    expect((await report(feedback("proceeding"))).status).toBe(200);
    const download = await ddi("GET", artifact._links.download.href);
    expect(download.bytes.equals(firmware.bytes)).toBe(true);
    const sum = await ddi("GET", artifact._links.md5sum.href);
    expect(String(sum.bytes)).toBe(`${hashOf("md5")}  ${artifact.filename}`);
    expect((await report(feedback("downloaded"))).status).toBe(200);
    expect((await report(feedback("closed", "success", { details: ["Update Installed."] }))).status).toBe(200);

    expect(await upgrade()).toMatchObject({
      attempt: { state: "succeeded" },
      attempts: [{ id: Number(id), state: "succeeded" }],
    });
    const after = (await ddi("GET", "")).body._links;
    expect(Object.keys(after)).toEqual(["installedBase", "configData"]);
    const installed = await ddi("GET", `${after.installedBase.href}?actionHistory=10`);
    expect(installed.body).toEqual({
      ...{ id, deployment: body.deployment },
      actionHistory: { status: "FINISHED", messages: ["Update Installed."] },
    });
    // Reading it again after its end opens nothing and changes nothing.
    expect((await ddi("GET", `/deploymentBase/${id}`)).status).toBe(200);
    expect(await upgrade()).toMatchObject({ attempt: { state: "succeeded" } });
    expect(Object.keys((await ddi("GET", "")).body._links)).toContain("installedBase");
  });

  test("is taken up once, however often it is fetched", async () => {
    const { ddi, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    await Promise.all(Array.from({ length: 5 }, () => ddi("GET", `/deploymentBase/${id}`)));
    const { events } = (await upgrade()).attempts[0];
    expect(events.map(({ toState }: { toState: string }) => toState)).toEqual(["offered", "downloading"]);
  });

  test("that fails keeps the device's last words as the reason, and its log in the history", async () => {
    const { ddi, actionId, upgrade, id: deviceId } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const explained = async () => (await api.operator("GET", `/v1/devices/${deviceId}/explanation`)).body;
    expect(await explained()).toMatchObject({ live: { attemptId: id, state: "offered" } });
    const details = ["Checking image", "Signature does not fit", ""];
    const failed = feedback("closed", "failure", { details, code: 17, result: { finished: "failure" } });
    expect((await ddi("POST", `/deploymentBase/${id}/feedback`, { json: failed })).status).toBe(200);
    const { attempts } = await upgrade();
    expect(attempts[0]).toMatchObject({ state: "failed" });
    expect(attempts[0].events.at(-1)).toMatchObject({ message: "Signature does not fit", details, code: 17 });
    expect((await ddi("GET", "")).body._links?.deploymentBase).toBeUndefined();
    expect(await explained()).toMatchObject({ live: null, candidates: [{ attempts: 1, reason: "BACKOFF" }] });
    const history = await ddi("GET", `/deploymentBase/${id}?actionHistory=-1`);
    expect(history.body.actionHistory.messages).toEqual(["", "Signature does not fit", "Checking image"]);
  });

  test("that fails with members that cannot be read fails all the same, and operators are told which", async () => {
    const { ddi, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const status = { details: ["Signature does not fit"], code: 2 ** 40, result: { finished: "failure", progress: 7 } };
    const json = { ...feedback("closed", "failure", status), timestamp: "now" };
    expect((await ddi("POST", `/deploymentBase/${id}/feedback`, { json })).status).toBe(200);
    const event = (await upgrade()).attempts[0].events.at(-1);
    expect(event).toMatchObject({ reportedState: "failed", message: "Signature does not fit", code: null });
    const note = "Update Server: ignored, as it could not be kept: progress, timestamp, code";
    expect(event.details).toEqual(["Signature does not fit", note]);
    const history = await ddi("GET", `/deploymentBase/${id}?actionHistory=-1`);
    expect(history.body.actionHistory.messages).toEqual(["Signature does not fit"]);
  });

  test("to a device that also asks natively is one record", async () => {
    const { ddi, token, id } = await anOfferedDevice(api);
    const native = api.as(token);
    const answers = await Promise.all(
      Array.from({ length: 10 }, async (_, index) =>
        index % 2 === 0
          ? Number(/\d+$/.exec((await ddi("GET", "")).body._links.deploymentBase.href)?.[0])
          : (await native("POST", "/v1/check", { json: { version: "1.0.0" } })).body.attempt.id,
      ),
    );
    expect(new Set(answers).size).toBe(1);
    expect((await api.operator("GET", `/v1/upgrades?deviceId=${id}`)).body.items).toHaveLength(1);
    await ddi("POST", `/deploymentBase/${answers[0]}/feedback`, { json: feedback("closed", "success") });
    const repeated = { json: { state: "succeeded" } };
    const answer = await native("POST", `/v1/attempts/${answers[0]}/reports`, repeated);
    expect(answer.body).toMatchObject({ effect: "repeated", attempt: { state: "succeeded" } });
  });

  test("succeeds by the device's word where nothing tells its version", async () => {
    const product = await aProduct(api, { confirmBy: "version" });
    const { ddi, actionId, upgrade } = await aDdiDevice(api, { product });
    await aFirmware(api, { product });
    const id = await actionId("deploymentBase");
    await ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "none") });
    expect(await upgrade()).toMatchObject({ attempt: { state: "succeeded" } });
  });

  test("succeeds by the version where an attribute tells it, and is not offered again meanwhile", async () => {
    const product = await aProduct(api, { confirmBy: "version" });
    await api.operator("PATCH", `/v1/products/${product}`, {
      json: { versionAttribute: "fw", hardwareAttribute: "board" },
    });
    const { ddi, actionId, upgrade, id: deviceId } = await aDdiDevice(api, { product });
    await aFirmware(api, { product });
    const id = await actionId("deploymentBase");
    const tell = (data: object) => ddi("PUT", "/configData", { json: { mode: "merge", data } });
    expect((await tell({ fw: "1.0.0", board: "rev-b", site: "Kiel\n" })).status).toBe(200);
    const device = async () => (await api.operator("GET", `/v1/devices/${deviceId}`)).body;
    expect(await device()).toMatchObject({
      ...{ reportedVersion: "1.0.0", hardwareRevision: "rev-b" },
      attributes: { fw: "1.0.0", board: "rev-b", site: "Kiel" },
    });
    expect(Object.keys((await ddi("GET", "")).body._links)).toEqual(["deploymentBase"]);

    await ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "success") });
    expect(await upgrade()).toMatchObject({ attempt: { state: "installed" } });
    expect(Object.keys((await ddi("GET", "")).body._links)).toEqual(["configData"]);
    expect((await tell({ fw: "2.0.0" })).status).toBe(200);
    expect(await upgrade()).toMatchObject({ attempt: { state: "succeeded" } });
  });
});
