import { setTimeout as sleep } from "node:timers/promises";
import { schema } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { eq, sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startApi, type TestApi } from "../support/start-api.ts";
import { anOfferedDevice, feedback } from "./ddi-client.ts";

describe.skipIf(!hasPostgres)("while somebody holds the device's row", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi({ env: { OTA_DATABASE_STATEMENT_TIMEOUT_MS: "1000" } });
  });
  afterAll(() => api.close());

  test("a poll is answered 200 without a link and with a short sleep", async () => {
    const { ddi, serial, actionId } = await anOfferedDevice(api);
    const release = await hold(api, serial);
    const { status, body } = await ddi("GET", "");
    await release();
    expect([status, body]).toEqual([200, { config: { polling: { sleep: "00:00:30" } } }]);
    expect(await actionId("deploymentBase")).toBeGreaterThan(0);
  });

  test("a final word waits for its turn", async () => {
    const { ddi, serial, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const release = await hold(api, serial);
    const answer = ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "failure") });
    await sleep(1_500);
    await release();
    expect((await answer).status).toBe(200);
    expect((await upgrade()).attempt.state).toBe("failed");
  });

  test("a final word that has waited too long is answered 429, never 5xx, and counts when it comes again", async () => {
    const { ddi, serial, actionId, upgrade } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const release = await hold(api, serial);
    const send = () => ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "success") });
    const startedAt = performance.now();
    const refused = await send();
    expect(performance.now() - startedAt).toBeGreaterThan(4_500);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    await release();
    expect((await send()).status).toBe(200);
    expect((await upgrade()).attempt.state).toBe("succeeded");
  });

  test("what only asks is answered 429, which every client takes for later", async () => {
    const { ddi, serial, actionId } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const release = await hold(api, serial);
    const { status, headers } = await ddi("GET", `/deploymentBase/${id}`);
    await release();
    expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
    expect((await ddi("GET", `/deploymentBase/${id}`)).status).toBe(200);
  });
});

describe.skipIf(!hasPostgres)("while the service is overloaded", () => {
  test("a poll is answered 200 without a link at once, and a final word all the same", async () => {
    const api = await startApi({
      env: {
        ...{ OTA_DATABASE_POOL_SIZE: "1", OTA_OVERLOAD_DATABASE_DELAY_MS: "50" },
        OTA_DATABASE_STATEMENT_TIMEOUT_MS: "60000",
      },
    });
    try {
      const { ddi, serial, actionId, upgrade } = await anOfferedDevice(api);
      const id = await actionId("deploymentBase");
      // The only connection.
      const release = await hold(api, serial);
      await vi.waitFor(
        async () => {
          const answer = await Promise.race([ddi("GET", ""), sleep(500)]);
          expect(answer).toMatchObject({ status: 200, body: { config: {} } });
          expect(Object.keys(answer?.body)).toEqual(["config"]);
          expect(answer?.body.config.polling.sleep >= "00:00:30").toBe(true);
        },
        { timeout: 30_000, interval: 100 },
      );
      const told = ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "failure") });
      await sleep(300);
      await release();
      expect((await told).status).toBe(200);
      expect((await upgrade()).attempt.state).toBe("failed");
    } finally {
      await api.close();
    }
  });
});

describe.skipIf(!hasPostgres)("a fault of the service's own", () => {
  test("is 429 to a final word too, so that it comes again", async () => {
    const api = await startApi();
    try {
      const { ddi, actionId, upgrade } = await anOfferedDevice(api);
      const id = await actionId("deploymentBase");
      const send = () => ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "success") });
      await api.db.execute(sql`alter table attempt_events rename to moved_away`);
      const { status, body } = await send();
      expect([status, body.exceptionClass]).toEqual([429, "INTERNAL_ERROR"]);
      await api.db.execute(sql`alter table moved_away rename to attempt_events`);
      expect((await send()).status).toBe(200);
      expect((await upgrade()).attempt.state).toBe("succeeded");
    } finally {
      await api.close();
    }
  });
});

/** Keeps the device's row until what is returned is called. */
async function hold(api: TestApi, serial: string): Promise<() => Promise<void>> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: held, resolve: holds } = Promise.withResolvers<void>();
  const holding = api.db.transaction(async (tx) => {
    await tx.select().from(schema.devices).where(eq(schema.devices.serial, serial)).for("update");
    holds();
    await released;
  });
  await held;
  return async () => {
    release();
    await holding;
  };
}
