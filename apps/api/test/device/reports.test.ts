import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

describe.skipIf(!hasPostgres)("a device's report", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  async function anOffer() {
    const product = await aProduct(api);
    await aFirmware(api, { product });
    const { call } = await aDevice(api, { product });
    const { body } = await call("POST", "/v1/check", { json: { version: "1.0.0" } });
    const report = (json: object) => call("POST", `/v1/attempts/${body.attempt.id}/reports`, { json });
    const history = async () => (await api.operator("GET", `/v1/upgrades/${body.upgradeId}`)).body.attempts[0].events;
    return { report, history };
  }

  test("of the end is stored however long and odd its other fields are", async () => {
    const { report, history } = await anOffer();
    const answer = await report({
      state: "failed",
      message: `\u0000${"m".repeat(5_000)}`,
      details: Array.from({ length: 60 }, (_, line) => `${line} ${"d".repeat(600)}`),
      progressPercent: 250.5,
      code: 2 ** 40,
      version: "v".repeat(1000),
    });
    expect(answer).toMatchObject({ status: 200, body: { attempt: { state: "failed" }, effect: "moved" } });
    const event = (await history()).at(-1);
    expect(event).toMatchObject({ reportedState: "failed", progressPercent: 100, code: null });
    expect(event.message).toBe(`\ufffd${"m".repeat(999)}`);
    expect(event.details).toHaveLength(50);
    expect(event.details[48]).toMatch(/^59 d{497}$/);
    expect(event.details[49]).toBe("Update Server: ignored, as it could not be kept: code");
  });

  test.for([
    ["deviceTime", "yesterday"],
    ["deviceTime", "0000-13-40T00:00:00Z"],
    ["deviceTime", 1_700_000_000],
    ["progressPercent", "half"],
    ["message", { text: "no space" }],
    ["details", "one line"],
    ["details", ["one line", 2]],
    ["code", "E42"],
    ["code", 1.5],
    ["version", ""],
    ["exitStatus", 1],
  ])("of the end counts without a %s of %j, and says so in the answer and the history", async ([name, value]) => {
    const { report, history } = await anOffer();
    const answer = await report({ state: "failed", message: "no space", code: 28, [String(name)]: value });
    expect(answer).toMatchObject({
      ...{ status: 200, body: { attempt: { state: "failed" }, effect: "moved", ignored: [name] } },
    });
    const event = (await history()).at(-1);
    expect(event.details.at(-1)).toBe(`Update Server: ignored, as it could not be kept: ${name}`);
    expect(event).toMatchObject({
      ...{ reportedState: "failed", progressPercent: null, deviceTime: null, reportedVersion: null },
      ...{ message: name === "message" ? null : "no space", code: name === "code" ? null : 28 },
    });
  });

  test("says nothing of what is kept, nor of fields that are null", async () => {
    const { report, history } = await anOffer();
    const none = { message: null, details: null, progressPercent: null, deviceTime: null, version: null };
    const answer = await report({ state: "failed", code: 28, ...none });
    expect(answer.body).toEqual({ attempt: { id: expect.any(Number), state: "failed" }, effect: "moved" });
    expect((await history()).at(-1)).toMatchObject({ code: 28, message: null, details: [] });
  });

  test("of the end is taken with a log of a megabyte, of which the last lines are kept", async () => {
    const { report, history } = await anOffer();
    const details = Array.from({ length: 20_000 }, (_, line) => `${line} ${"d".repeat(50)}`);
    expect(await report({ state: "failed", details })).toMatchObject({ status: 200, body: { effect: "moved" } });
    expect((await history()).at(-1).details.at(-1)).toMatch(/^19999 /);
  });

  test("of the end is answered the same when it comes again", async () => {
    const { report } = await anOffer();
    expect(await report({ state: "failed" })).toMatchObject({ status: 200, body: { effect: "moved" } });
    expect(await report({ state: "failed" })).toMatchObject({ status: 200, body: { effect: "repeated" } });
    expect(await report({ state: "downloading" })).toMatchObject({ status: 409, body: { code: "ATTEMPT_CLOSED" } });
  });

  test("of the end whose answer was lost is stored once, however often it is sent again", async () => {
    const product = await aProduct(api);
    await aFirmware(api, { product });
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const { call, token } = await aDevice(api, { product });
        const { attempt, upgradeId } = (await call("POST", "/v1/check", { json: { version: "1.0.0" } })).body;
        const path = `/v1/attempts/${attempt.id}/reports`;
        // The connection is cut before the request, while it is served, or after the commit.
        for (const cutAfterMs of [index, 2 * index]) {
          await fetch(`${api.url}${path}`, {
            method: "POST",
            headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
            body: '{"state":"failed","message":"no space"}',
            signal: AbortSignal.timeout(cutAfterMs),
          }).catch(() => undefined);
        }
        const again = await call("POST", path, { json: { state: "failed", message: "no space" } });
        expect(again.status).toBe(200);
        expect(again.body.attempt).toEqual({ id: attempt.id, state: "failed" });
        const { events } = (await api.operator("GET", `/v1/upgrades/${upgradeId}`)).body.attempts[0];
        expect(events.map(({ toState }: { toState: string }) => toState)).toEqual(["offered", "failed"]);
      }),
    );
  });
});
