import { hasPostgres } from "@ota/testkit";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDdiDevice, feedback } from "../ddi/ddi-client.ts";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { scrape } from "../support/metrics.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

describe.skipIf(!hasPostgres)("ota_attempt_moves_total", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi({ env: { OTA_SWEEP_INTERVAL_MS: "100" } });
  });
  afterAll(() => api.close());

  /** A device with an open attempt. */
  async function anOffer(product: string, { rollout = {} }: { readonly rollout?: object } = {}) {
    const { id } = await aFirmware(api, { product, release: false });
    await api.operator("POST", `/v1/firmware/${id}/release`, { json: { startRollout: false } });
    const { body } = await api.operator("POST", `/v1/firmware/${id}/rollouts`, { json: rollout });
    await api.operator("POST", `/v1/rollouts/${body.id}/start`);
    const device = await aDevice(api, { product });
    const check = async (json: object = {}) => (await device.call("POST", "/v1/check", { json })).body;
    const { attempt, upgradeId } = await check({ version: "1.0.0" });
    const report = (state: string) => device.call("POST", `/v1/attempts/${attempt.id}/reports`, { json: { state } });
    const cancel = () => api.operator("POST", `/v1/upgrades/${upgradeId}/cancel`);
    return { ...device, firmwareId: id, attemptId: attempt.id as number, check, report, cancel };
  }

  /** What the history has, and the figures. */
  async function moves(): Promise<{ recorded: Record<string, number>; counted: Record<string, number> }> {
    const rows = (await api.db.execute(
      sql`select to_state as "to", count(*)::integer as n from attempt_events where from_state <> to_state group by 1`,
    )) as unknown as { to: string; n: number }[];
    const counted = [...(await scrape(api.as(undefined)))].flatMap(([name, value]) => {
      const to = /^ota_attempt_moves_total\{to="(\w+)"\}$/.exec(name)?.[1];
      return to === undefined ? [] : [[to, value] as const];
    });
    return {
      recorded: Object.fromEntries(rows.map(({ to, n }) => [to, n])),
      counted: Object.fromEntries(counted),
    };
  }

  test("has each move of the history once: by report, check, operator, deadline, and over DDI", async () => {
    const product = () => aProduct(api, { confirmBy: "report" });

    const reporting = await anOffer(await product());
    for (const state of ["downloading", "downloading", "installing", "succeeded", "succeeded"]) {
      await reporting.report(state);
    }
    const showing = await anOffer(await aProduct(api, { confirmBy: "version" }));
    await showing.check({ version: "2.0.0" });
    const withdrawn = await anOffer(await product());
    await api.operator("POST", `/v1/firmware/${withdrawn.firmwareId}/withdraw`, { json: { reason: "wrong" } });
    await withdrawn.check();
    const line = await product();
    const superseded = await anOffer(line);
    await aFirmware(api, { product: line, version: "3.0.0" });
    await superseded.check();

    const cancelled = await anOffer(await product());
    expect((await cancelled.cancel()).status).toBe(200);
    const stopped = await anOffer(await product());
    await stopped.report("downloading");
    await Promise.all([stopped.cancel(), stopped.cancel(), stopped.cancel()]);
    await stopped.report("cancelled");

    const silent = await anOffer(await product());
    await api.db.execute(
      sql`update upgrade_attempts set deadline_at = now() - interval '1 second' where id = ${silent.attemptId}`,
    );
    await expect.poll(async () => (await moves()).counted["timed_out"], { timeout: 30_000 }).toBe(1);
    await silent.report("succeeded");

    const consenting = await aDdiDevice(api);
    await anOffer(consenting.product, { rollout: { requiresConfirmation: true } });
    await consenting.actionId("confirmationBase");
    await consenting.ddi("POST", "/confirmationBase/activateAutoConfirm");
    const id = await consenting.actionId("deploymentBase");
    await consenting.ddi("GET", `/deploymentBase/${id}`);
    await consenting.ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "success") });

    const { recorded, counted } = await moves();
    expect(counted).toEqual(recorded);
    expect(Object.keys(counted).sort()).toEqual(
      [
        "cancelled",
        "cancelling",
        "downloading",
        "installing",
        "offered",
        "succeeded",
        "superseded",
        "timed_out",
      ].sort(),
    );
  });

  test("has an open attempt that is deleted with its device as cancelled, and a closed one not again", async () => {
    const { cancelled: before = 0 } = (await moves()).counted;
    const open = await anOffer(await aProduct(api));
    const closed = await anOffer(await aProduct(api));
    await closed.report("failed");
    for (const { id } of [open, closed]) await api.operator("DELETE", `/v1/devices/${id}?endsAttempt=true`);
    expect((await moves()).counted["cancelled"]).toBe(before + 1);
  });
});
