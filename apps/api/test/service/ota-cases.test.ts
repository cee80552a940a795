import { hasPostgres } from "@ota/testkit";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

// Those of docs/ota-cases.md that go across the parts of the service.
describe.skipIf(!hasPostgres)("faults that other servers had", { timeout: 60_000 }, () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi({ database: "postgres", env: { OTA_SWEEP_INTERVAL_MS: "100" } });
  }, 180_000);
  afterAll(() => api.close());

  /** A product with a running rollout. */
  async function aRollout(terms: object) {
    const product = await aProduct(api);
    const { id } = await aFirmware(api, { product, release: false });
    await api.operator("POST", `/v1/firmware/${id}/release`);
    const { body: rollout } = await api.operator("POST", `/v1/firmware/${id}/rollouts`, { json: terms });
    const take = async (step: "start" | "pause" | "resume") => {
      expect((await api.operator("POST", `/v1/rollouts/${rollout.id}/${step}`)).status).toBe(200);
    };
    await take("start");
    const live = async () => (await api.operator("GET", `/v1/rollouts/${rollout.id}`)).body.counts.live;
    return { product, rolloutId: rollout.id, take, live };
  }

  async function newDevice(product: string) {
    const device = await aDevice(api, { product });
    const check = async () => {
      const { body } = await device.call("POST", "/v1/check", { json: { version: "1.0.0" } });
      return body.decision === "update" ? body.attempt.number : body.reason;
    };
    const change = (json: object) => api.operator("PATCH", `/v1/devices/${device.id}`, { json });
    return { id: device.id, check, change };
  }

  const ended = (check: () => Promise<number>) => expect.poll(check, { timeout: 30_000, interval: 200 });

  test("a device that is registered, or joins the group, after the rollout was started is in it like the others", async () => {
    const { product } = await aRollout({ groups: ["pilot"] });
    const late = await newDevice(product);
    expect(await late.check()).toBe("NOT_IN_ROLLOUT");
    await late.change({ groups: ["pilot"] });
    expect(await late.check()).toBe(1);
  });

  test("a rollout that allows downgrades says so in the audit log", async () => {
    const { rolloutId } = await aRollout({ allowDowngrade: true });
    const { body } = await api.operator("GET", `/v1/audit?subjectId=${rolloutId}&action=rollout.create`);
    expect(body.items).toMatchObject([{ action: "rollout.create", after: { allowDowngrade: true } }]);
  });

  test("an offer that runs out while its rollout is paused frees its place, and resuming offers anew", async () => {
    const terms = { maxConcurrent: 1, timeoutsSeconds: { offered: 1 }, backoffSeconds: 0 };
    const { product, take, live } = await aRollout(terms);
    const device = await newDevice(product);
    expect(await device.check()).toBe(1);
    await take("pause");
    expect(await device.check()).toBe("ROLLOUT_PAUSED");
    await ended(live).toBe(0);
    expect(await device.check()).toBe("ROLLOUT_PAUSED");
    await take("resume");
    expect(await device.check()).toBe(2);
  });

  test("a blocked device loses its place when its attempt times out", async () => {
    const { product, live } = await aRollout({ maxConcurrent: 1 });
    const [one, other] = [await newDevice(product), await newDevice(product)];
    expect(await one.check()).toBe(1);
    expect(await other.check()).toBe("CAP_REACHED");
    await one.change({ blocked: true });
    expect(await one.check()).toBe("DEVICE_BLOCKED");
    await api.db.execute(sql`
      update upgrade_attempts set deadline_at = now() - interval '1 second'
      where device_id = (select id from devices where public_id = ${one.id}::uuid)`);
    await ended(live).toBe(0);
    expect(await other.check()).toBe(1);
    expect(await one.check()).toBe("DEVICE_BLOCKED");
  });
});
