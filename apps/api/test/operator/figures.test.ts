import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

describe.each(["postgres", "embedded"] as const)("figures on %s", { skip: !hasPostgres }, (database) => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi({ database });
    // A new embedded database takes some seconds of computing, on a busy machine many.
  }, 180_000);
  afterAll(() => api.close());

  test("follow a fleet from the offer to its outcomes, ranked, in the moment in which they change", async () => {
    const product = await aProduct(api, { confirmBy: "report" });
    const figures = async (query = "") => (await api.operator("GET", `/v1/products/${product}/figures${query}`)).body;
    const none = await figures();
    expect(none).toMatchObject({ devices: 0, versions: [], failures: [] });
    expect(Object.values(none.attempts).every((count) => count === 0)).toBe(true);

    const { id } = await aFirmware(api, { product, version: "2.0.0" });
    const rolloutId: string = (await api.operator("GET", `/v1/firmware/${id}`)).body.rollouts[0].id;
    const fleet = await Promise.all(Array.from({ length: 5 }, () => aDevice(api, { product })));
    const attempts = await Promise.all(
      fleet.map(async ({ call }) => (await call("POST", "/v1/check", { json: { version: "1.0.0" } })).body.attempt.id),
    );
    expect(await figures()).toMatchObject({
      ...{ devices: 5, versions: [{ version: "1.0.0", count: 5 }], attempts: { offered: 5 } },
    });

    const report = (index: number, json: object) =>
      fleet[index]?.call("POST", `/v1/attempts/${attempts[index]}/reports`, { json });
    await report(0, { state: "succeeded", version: "2.0.0" });
    await report(1, { state: "failed", code: 28, message: "no space: 17 bytes missing" });
    await report(2, { state: "failed", code: 28, message: "no space: 4096 bytes missing" });
    await report(3, { state: "failed" });
    const expected = {
      attempts: { offered: 1, succeeded: 1, failed: 3 },
      failures: [
        { state: "failed", code: 28, message: "no space: # bytes missing", count: 2 },
        { state: "failed", code: null, message: null, count: 1 },
      ],
    };
    const after = await figures();
    expect(after).toMatchObject({
      ...expected,
      ...{
        devices: 5,
        versions: [
          { version: "1.0.0", count: 4 },
          { version: "2.0.0", count: 1 },
        ],
      },
    });
    expect((await api.operator("GET", `/v1/rollouts/${rolloutId}/figures`)).body).toMatchObject(expected);
    expect(await figures("?limit=1")).toMatchObject({
      ...{ devices: 5, versions: [{ version: "1.0.0" }], failures: expected.failures.slice(0, 1) },
      ...{ versionsLeftOff: { entries: 1, count: 1 }, failuresLeftOff: { entries: 1, count: 1 } },
    });
    expect((await figures("?limit=1")).versions).toHaveLength(1);
    for (const limit of ["0", "201", "x"]) expect((await figures(`?limit=${limit}`)).code).toBe("FIELDS_INVALID");
  });

  test("of a rollout tell its own firmware's attempts from those on the steps to it", async () => {
    const product = await aProduct(api, { confirmBy: "report" });
    const step = await aFirmware(api, { product, version: "1.5.0", release: false });
    await api.operator("POST", `/v1/firmware/${step.id}/release`, { json: {} });
    const target = await aFirmware(api, { product, version: "2.0.0", requiresVersion: "1.5.0" });
    const rolloutId: string = (await api.operator("GET", `/v1/firmware/${target.id}`)).body.rollouts[0].id;
    const versions = async (query = "") =>
      (await api.operator("GET", `/v1/rollouts/${rolloutId}/figures${query}`)).body.versions;
    const [ofTarget, ofStep] = [
      { id: target.id, version: "2.0.0" },
      { id: step.id, version: "1.5.0" },
    ];
    expect(await versions()).toMatchObject([{ firmware: ofTarget, attempts: { offered: 0 } }]);

    const [first, second] = [await aDevice(api, { product }), await aDevice(api, { product })];
    const offered = await first.call("POST", "/v1/check", { json: { version: "1.0.0" } });
    await second.call("POST", "/v1/check", { json: { version: "1.0.0" } });
    const done = { state: "succeeded", version: "1.5.0" };
    await first.call("POST", `/v1/attempts/${offered.body.attempt.id}/reports`, { json: done });
    await first.call("POST", "/v1/check", { json: { version: "1.5.0" } });
    const expected = [
      { firmware: ofTarget, attempts: { offered: 1, succeeded: 0 } },
      { firmware: ofStep, attempts: { offered: 1, succeeded: 1 } },
    ];
    expect(await versions()).toMatchObject(expected);
    expect(await versions("?limit=1")).toMatchObject(expected.slice(0, 1));
    expect(await versions("?limit=1")).toHaveLength(1);
  });

  test("a version that is none is counted as it is reported", async () => {
    const product = await aProduct(api);
    const { call } = await aDevice(api, { product });
    await call("POST", "/v1/check", { json: { version: "built by hand" } });
    expect((await api.operator("GET", `/v1/products/${product}/figures`)).body.versions).toEqual([
      { version: "built by hand", count: 1 },
    ]);
  });
});
