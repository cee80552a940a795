import { hasPostgres } from "@ota/testkit";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aFirmware } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";
import { aDdiDevice, type DdiDevice, feedback } from "./ddi-client.ts";

const STEPS = [
  "release",
  "release with consent",
  "fetch",
  "proceed",
  "succeed",
  "fail",
  "stop",
  "refuse to stop",
  "confirm",
  "deny",
  "tell attributes",
  "consent to all",
  "ask again",
  "cancel",
  "reset",
  "withdraw",
] as const;
type Step = (typeof STEPS)[number];

/** A history that shows every link there is; the others are random. */
const ALL_LINKS: Step[] = ["succeed", "release with consent", "consent to all", "fetch", "cancel", "stop", "ask again"];

describe.skipIf(!hasPostgres)("the links of DDI", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  test("all lead somewhere, whatever has happened before, and at most one of them to an action", async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { minLength: 8, maxLength: 16 }), async (steps) => {
        const history = new History(api, await aDdiDevice(api), seen);
        for (const step of ["release", ...steps] as const) {
          await history.take(step);
          await history.follow();
        }
      }),
      { numRuns: 8, endOnFailure: true, examples: [[ALL_LINKS]] },
    );
    // Else the histories would have shown nothing.
    const resources = ["cancelAction", "configData", "confirmationBase", "deploymentBase", "installedBase"];
    expect([...seen].sort()).toEqual([...resources, "activateAutoConfirm", "deactivateAutoConfirm"].sort());
  });
});

class History {
  readonly #api: TestApi;
  readonly #device: DdiDevice;
  readonly #seen: Set<string>;
  #versions = 0;
  #newest = "";
  /** The action that was linked last. */
  #id = 0;

  constructor(api: TestApi, device: DdiDevice, seen: Set<string>) {
    this.#api = api;
    this.#device = device;
    this.#seen = seen;
  }

  async take(step: Step): Promise<void> {
    const { ddi } = this.#device;
    const tell = (path: string, json: object) => ddi("POST", path.replace(":id", String(this.#id)), { json });
    const DEPLOYMENT = "/deploymentBase/:id/feedback";
    switch (step) {
      case "release":
      case "release with consent":
        return this.#release(step);
      case "fetch":
        return void (await ddi("GET", `/deploymentBase/${this.#id}`));
      case "proceed":
        return void (await tell(DEPLOYMENT, feedback("proceeding")));
      case "succeed":
        return void (await tell(DEPLOYMENT, feedback("closed", "success")));
      case "fail":
        return void (await tell(DEPLOYMENT, feedback("closed", "failure")));
      case "stop":
        return void (await tell("/cancelAction/:id/feedback", feedback("closed", "success")));
      case "refuse to stop":
        return void (await tell("/cancelAction/:id/feedback", feedback("rejected")));
      case "confirm":
        return void (await tell("/confirmationBase/:id/feedback", { confirmation: "confirmed" }));
      case "deny":
        return void (await tell("/confirmationBase/:id/feedback", { confirmation: "denied" }));
      case "tell attributes":
        return void (await ddi("PUT", "/configData", { json: { data: { a: "1" } } }));
      case "consent to all":
        return void (await ddi("POST", "/confirmationBase/activateAutoConfirm"));
      case "ask again":
        return void (await ddi("POST", "/confirmationBase/deactivateAutoConfirm"));
      case "cancel":
      case "reset": {
        const { body } = await this.#api.operator("GET", `/v1/upgrades?deviceId=${this.#device.id}`);
        if (body.items.length > 0) await this.#api.operator("POST", `/v1/upgrades/${body.items[0].id}/${step}`);
        return;
      }
      case "withdraw":
        return void (await this.#api.operator("POST", `/v1/firmware/${this.#newest}/withdraw`));
    }
  }

  async #release(how: "release" | "release with consent"): Promise<void> {
    this.#versions += 1;
    const firmware = await aFirmware(this.#api, {
      product: this.#device.product,
      version: `${this.#versions}.0.0`,
      sizeBytes: 10,
      release: how === "release",
    });
    this.#newest = firmware.id;
    if (how === "release") return;
    const { operator } = this.#api;
    await operator("POST", `/v1/firmware/${firmware.id}/release`, { json: { startRollout: false } });
    const { body } = await operator("POST", `/v1/firmware/${firmware.id}/rollouts`, {
      json: { requiresConfirmation: true },
    });
    await operator("POST", `/v1/rollouts/${body.id}/start`);
  }

  /** Polls, and follows every link of every answer that one leads to. */
  async follow(): Promise<void> {
    const { ddi } = this.#device;
    for (const resource of ["", "/confirmationBase"]) {
      const { status, body } = await ddi("GET", resource);
      expect(status).toBe(200);
      const links = Object.entries(body._links ?? {}) as [string, { readonly href: string }][];
      const actions = links.filter(([name]) => ["deploymentBase", "cancelAction", "confirmationBase"].includes(name));
      expect(actions.length).toBeLessThanOrEqual(1);
      for (const [name, { href }] of links) await this.#followOne(name, href);
      const action = /\/(\d+)$/.exec(actions[0]?.[1].href ?? "")?.[1];
      if (action !== undefined) this.#id = Number(action);
    }
  }

  async #followOne(name: string, href: string): Promise<void> {
    const { ddi } = this.#device;
    expect(href).toMatch(`${this.#api.url}/DEFAULT/controller/v1/${this.#device.serial}/`);
    // Fetching a deployment takes it up, which is a step of its own: only some of them are.
    this.#seen.add(name);
    if (/ivateAutoConfirm$|configData$/.test(href)) {
      expect((await ddi("DELETE", href)).status).toBe(405);
      return;
    }
    const { status, body } = await ddi("GET", href);
    expect(status, href).toBe(200);
    const chunks = (body.deployment ?? body.confirmation)?.chunks ?? [];
    const files = chunks.flatMap(({ artifacts }: { artifacts: { _links: object }[] }) => artifacts);
    for (const { _links } of files) {
      for (const { href: file } of Object.values(_links) as { href: string }[]) {
        expect((await ddi("HEAD", file)).status, file).toBe(200);
      }
    }
    // What is to be done can be fetched; what was done may be out of reach by now.
    if (name === "deploymentBase" || name === "confirmationBase") expect(files[0]._links.download).toBeDefined();
  }
}
