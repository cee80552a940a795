import { createTestDatabase, hasPostgres, hasSwupdate, until } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../service/operator-client.ts";
import { type ListeningService, startServiceProcess, TEST_OPERATOR_KEY } from "../service/service-process.ts";
import { runScriptOfPage } from "./operators-page.ts";
import { type RecordingProxy, startRecordingProxy } from "./recording-proxy.ts";
import { type ImageOptions, makeImageKeys, SwupdateDevice } from "./swupdate.ts";

/** For a machine that does something else as well; each step takes a few seconds at the most. */
const WITHIN_MS = 60_000;

const FEEDBACK = /^\/deploymentBase\/\d+\/feedback$/;

describe.skipIf(!(hasPostgres && hasSwupdate))("Debian's swupdate", { timeout: 240_000 }, () => {
  let service: ListeningService;
  let keysFrom: string;

  beforeAll(async () => {
    [service, keysFrom] = await Promise.all([
      startServiceProcess({ env: { DATABASE_URL: await createTestDatabase(), TRUST_PROXY: "127.0.0.1" } }),
      makeImageKeys(),
    ]);
  });
  afterAll(() => service.dispose());

  /** A device in a product of its own with a firmware that it is offered, behind a proxy of its own. */
  async function aDevice(name: string, { token, ...image }: Partial<ImageOptions> & { token?: "gateway" } = {}) {
    const { url } = service;
    const api = (method: string, path: string, json?: unknown) => call(url, path, { method, json });
    const operator = { OTA_URL: url, OTA_OPERATOR_KEY: TEST_OPERATOR_KEY, PRODUCT: name };
    await runScriptOfPage("product.sh", { cwd: keysFrom, env: operator });
    const made =
      token === "gateway"
        ? await api("POST", `/v1/products/${name}/gateway-tokens`, { name: "line" })
        : await api("POST", `/v1/products/${name}/devices`, { serial: `${name}-1` });
    expect(made.status).toBe(201);
    const proxy = await startRecordingProxy(url);
    const device = new SwupdateDevice({
      ...{ ...operator, OTA_URL: proxy.url, SERIAL: `${name}-1` },
      [token === "gateway" ? "GATEWAY" : "TOKEN"]: made.body.token,
    });
    const sha256 = await device.publish({ version: "2.0.0", ...image }, { keysFrom });

    return {
      ...{ api, proxy, device, sha256 },
      async upgrade() {
        const { items } = (await api("GET", "/v1/upgrades?limit=100")).body;
        const found = items.find((each: { device: { product: string } }) => each.device.product === name);
        return found === undefined ? undefined : (await api("GET", `/v1/upgrades/${found.id}`)).body;
      },
      async untilIn(state: string) {
        await until(`the attempt is ${state}`, async () => (await this.upgrade())?.attempt.state === state, WITHIN_MS);
      },
      async untilInstalled() {
        await until("swupdate has installed", async () => device.log.includes("SWUPDATE successful"), WITHIN_MS);
      },
      /** Starts it, and has it poll again once it has told its attributes. */
      async startAndPoll(script: string) {
        await device.start(script);
        await seen(proxy, "PUT", /^\/configData$/);
        await device.poll();
      },
      async [Symbol.asyncDispose]() {
        await device[Symbol.asyncDispose]();
        await proxy[Symbol.asyncDispose]();
      },
    };
  }

  async function seen(proxy: RecordingProxy, method: string, resource: RegExp): Promise<void> {
    await until(
      `the client sends ${method} ${resource}`,
      async () => proxy.seen.some((each) => each.method === method && resource.test(each.resource)),
      WITHIN_MS,
    );
  }

  const refused = ({ seen }: RecordingProxy) => seen.filter(({ status }) => status >= 400);

  async function installAndConfirm(given: Awaited<ReturnType<typeof aDevice>>, startScript: string): Promise<void> {
    const { device, proxy, sha256, upgrade } = given;
    await given.startAndPoll(startScript);
    await given.untilInstalled();
    expect(await device.installedSha256()).toBe(sha256);
    // Installed is not yet confirmed.
    expect((await upgrade()).attempt).toMatchObject({ state: "downloading", closedAt: null });

    await device.stop();
    await device.start("confirm.sh");
    await given.untilIn("succeeded");
    expect(refused(proxy)).toEqual([]);
    expect((await upgrade()).attempts).toHaveLength(1);
  }

  test.concurrent("polls, downloads, installs, tells of it, and after a restart confirms: the upgrade has succeeded", async () => {
    await using given = await aDevice("loop");
    await installAndConfirm(given, "start.sh");
    const { items } = (await given.api("GET", "/v1/devices?product=loop")).body;
    expect(items).toMatchObject([
      { hardwareRevision: "rev-b", confirmedVersion: "2.0.0", attributes: { board: "rev-b", site: "Berlin" } },
    ]);
  });

  test.concurrent("registers itself through a gateway token, and has the same loop", async () => {
    await using given = await aDevice("gateway", { token: "gateway" });
    await installAndConfirm(given, "start-with-gateway.sh");
    const { items } = (await given.api("GET", "/v1/devices?product=gateway")).body;
    expect(items).toMatchObject([{ serial: "gateway-1", registeredBy: "gateway" }]);
  });

  test.concurrent("fails by its word that the new system does not work", async () => {
    await using given = await aDevice("fallback");
    const { device, proxy } = given;
    await given.startAndPoll("start.sh");
    await given.untilInstalled();
    await device.stop();
    await device.start("confirm.sh", { RESULT: "3" });
    await given.untilIn("failed");
    expect(refused(proxy)).toEqual([]);
  });

  test.concurrent("fails by the image's script, and says so in the upgrade's history", async () => {
    await using given = await aDevice("script", { exitCode: 1 });
    await given.startAndPoll("start.sh");
    await given.untilIn("failed");
    const { events } = (await given.upgrade()).attempts[0];
    expect(detailsOf(events)).toContain("ERROR : execute postinstall scripts failed");
    expect(events.at(-1)).toMatchObject({ reportedState: "failed", fromState: "downloading" });
    expect(refused(given.proxy)).toEqual([]);
  });

  test.concurrent("fails by a file that is not the described one, installs nothing, and says why", async () => {
    await using given = await aDevice("spoilt", { isSpoilt: true });
    await given.startAndPoll("start.sh");
    await given.untilIn("failed");
    const { attempt, attempts } = await given.upgrade();
    expect(detailsOf(attempts[0].events)).toMatch(/HASH mismatch/i);
    expect(attempt.failureMessage).not.toBeNull();
    expect(await given.device.installedSha256()).toBeUndefined();
  });

  test.concurrent("cancelled between two polls, it confirms the cancellation and installs nothing", async () => {
    await using given = await aDevice("cancel");
    const { device, proxy, upgrade } = given;
    await device.start("start.sh");
    // Its first poll, in which it takes the deployment up without installing it.
    await seen(proxy, "PUT", /^\/configData$/);
    const asked = await given.api("POST", `/v1/upgrades/${(await upgrade()).id}/cancel`);
    expect(asked.body.attempt.state).toBe("cancelling");
    await device.poll();
    await given.untilIn("cancelled");
    await seen(proxy, "POST", /^\/cancelAction\/\d+\/feedback$/);
    expect(proxy.seen.filter(({ resource }) => resource.includes("/artifacts/"))).toEqual([]);
    expect(await device.installedSha256()).toBeUndefined();
  });

  test.concurrent("goes on with a download where it was cut", async () => {
    await using given = await aDevice("cut", { payloadBytes: 400_000 });
    const { device, proxy, sha256 } = given;
    proxy.cutDownloadAfter(100_000);
    await given.startAndPoll("start.sh");
    await given.untilInstalled();
    expect(await device.installedSha256()).toBe(sha256);
    const downloads = proxy.seen.filter(({ method, resource }) => method === "GET" && resource.includes("/artifacts/"));
    expect(downloads).toMatchObject([
      { status: 200, range: undefined },
      { status: 206, range: "bytes=100000-" },
    ]);
    await seen(proxy, "POST", FEEDBACK);
  });
});

function detailsOf(events: readonly { readonly details: readonly string[] }[]): string {
  return events.flatMap(({ details }) => details).join("\n");
}
