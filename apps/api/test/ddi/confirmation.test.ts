import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aFirmware } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";
import { aDdiDevice, anOfferedDevice, type DdiDevice } from "./ddi-client.ts";

describe.skipIf(!hasPostgres)("consent over DDI", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  async function offerWithConsent({ product }: DdiDevice, version: string): Promise<void> {
    const { id } = await aFirmware(api, { product, version, release: false });
    await api.operator("POST", `/v1/firmware/${id}/release`, { json: { startRollout: false } });
    const { body } = await api.operator("POST", `/v1/firmware/${id}/rollouts`, {
      json: { requiresConfirmation: true },
    });
    await api.operator("POST", `/v1/rollouts/${body.id}/start`);
  }

  test("is asked for before a deployment, and its answers are in the history", async () => {
    const device = await aDdiDevice(api);
    const { ddi, serial, upgrade } = device;
    await offerWithConsent(device, "2.0.0");
    const { confirmationBase, deploymentBase } = (await ddi("GET", "")).body._links;
    expect(deploymentBase).toBeUndefined();
    const { body } = await ddi("GET", confirmationBase.href);
    expect(Object.keys(body)).toEqual(["id", "confirmation"]);
    expect(body.confirmation.chunks).toHaveLength(1);
    const standing = await ddi("GET", "/confirmationBase");
    expect(standing.body).toEqual({
      autoConfirm: { active: false },
      _links: {
        activateAutoConfirm: {
          href: `${api.url}/DEFAULT/controller/v1/${serial}/confirmationBase/activateAutoConfirm`,
        },
        confirmationBase,
      },
    });

    const answer = (json: object) => ddi("POST", `/confirmationBase/${body.id}/feedback`, { json });
    await answer({ confirmation: "denied", details: ["the user is driving"] });
    expect((await ddi("GET", "")).body._links.confirmationBase).toEqual(confirmationBase);
    await answer({ confirmation: "confirmed" });
    expect((await ddi("GET", "")).body._links.deploymentBase.href).toMatch(`/deploymentBase/${body.id}`);
    expect((await upgrade()).attempts[0].events).toMatchObject([
      { toState: "awaiting_confirmation" },
      { reportedState: "denied", toState: "awaiting_confirmation", details: ["the user is driving"] },
      { reportedState: "confirmed", toState: "offered" },
    ]);
  });

  test("once for all answers what is asked now and what will be, until it is taken back", async () => {
    const device = await aDdiDevice(api);
    const { ddi, actionId } = device;
    await offerWithConsent(device, "2.0.0");
    const first = await actionId("confirmationBase");
    const json = { initiator: "owner", remark: "always" };
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => ddi("POST", "/confirmationBase/activateAutoConfirm", { json })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect(await actionId("deploymentBase")).toBe(first);
    const { autoConfirm, _links } = (await ddi("GET", "/confirmationBase")).body;
    expect(autoConfirm).toEqual({ active: true, ...json, activatedAt: expect.any(Number) });
    expect(Math.abs(autoConfirm.activatedAt - Date.now())).toBeLessThan(60_000);
    expect(Object.keys(_links)).toEqual(["deactivateAutoConfirm"]);

    await offerWithConsent(device, "3.0.0");
    expect(await actionId("deploymentBase")).toBeGreaterThan(first);
    await ddi("POST", "/confirmationBase/deactivateAutoConfirm");
    await offerWithConsent(device, "4.0.0");
    expect(await actionId("confirmationBase")).toBeGreaterThan(first);
  });

  test("is neither asked for nor taken where the rollout wants none", async () => {
    const { ddi, actionId } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    const json = { confirmation: "confirmed" };
    expect((await ddi("POST", `/confirmationBase/${id}/feedback`, { json })).status).toBe(404);
  });
});
