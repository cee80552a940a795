import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

describe.skipIf(!hasPostgres)("the events of an attempt", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  test("that has told much are pages, newest first, which go on where the upgrade's history begins", async () => {
    const product = await aProduct(api);
    await aFirmware(api, { product });
    const device = await aDevice(api, { product });
    const { attempt, upgradeId } = (await device.call("POST", "/v1/check", { json: { version: "1.0.0" } })).body;
    for (let percent = 1; percent <= 60; percent += 1) {
      const json = { state: "downloading", progressPercent: percent };
      await device.call("POST", `/v1/attempts/${attempt.id}/reports`, { json });
    }
    const percents = (events: { progressPercent: number | null }[]) => events.map((event) => event.progressPercent);

    const [history] = (await api.operator("GET", `/v1/upgrades/${upgradeId}`)).body.attempts;
    expect(percents(history.events)).toEqual(Array.from({ length: 50 }, (_, index) => index + 11));
    const path = `/v1/upgrades/${upgradeId}/attempts/${attempt.number}/events`;
    const earlier = (await api.operator("GET", `${path}?cursor=${history.earlierEvents}`)).body;
    expect(percents(earlier.items)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, null]);
    expect(earlier.nextCursor).toBeNull();
    const { items, nextCursor } = (await api.operator("GET", `${path}?limit=61`)).body;
    expect(items).toEqual([...history.events.toReversed(), ...earlier.items]);
    expect(nextCursor).toBeNull();

    const codeOf = async (changed: string) => (await api.operator("GET", changed)).body.code;
    expect(await codeOf(`/v1/upgrades/${upgradeId}/attempts/2/events`)).toBe("NOT_FOUND");
    expect(await codeOf(`/v1/upgrades/${upgradeId}/attempts/0/events`)).toBe("FIELDS_INVALID");
    expect(await codeOf(`${path}?cursor=nonsense`)).toBe("INVALID_CURSOR");
    expect((await device.call("GET", path)).status).toBe(401);
  });
});
