import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { describe, expect, test } from "vitest";
import { check, seedFleet } from "../service/operator-client.ts";
import { type ListeningService, startServiceProcess } from "../service/service-process.ts";
import { aDevice, aProduct } from "../support/fleet.ts";
import { startApi } from "../support/start-api.ts";

const PAGE = resolve(import.meta.dirname, "../../../../docs/operate-keys.md");

describe.skipIf(!hasPostgres)("docs/operate-keys.md", { timeout: 120_000 }, () => {
  test("its commands replace an operator key, a device's token and a gateway's", async () => {
    const blocks = [...(await readFile(PAGE, "utf8")).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block);
    expect(blocks).toHaveLength(3);
    const api = await startApi();
    const folder = await mkdtemp(join(tmpdir(), "ota-page-"));
    try {
      const product = await aProduct(api);
      const device = await aDevice(api, { product });
      const gateway = (
        await api.operator("POST", `/v1/products/${product}/gateway-tokens`, { json: { name: "assembly line 2" } })
      ).body;
      const serial = { "OTA-Device-Serial": "hub-1" };
      await api.as(gateway.token)("POST", "/v1/check", { json: {}, headers: serial });
      const keys = (await api.operator("GET", "/v1/operator-keys")).body.items;
      const env = {
        ...{ PATH: process.env["PATH"], OTA_URL: api.url, OTA_OPERATOR_KEY: api.operatorKey },
        ...{ OLD_KEY_ID: keys.find(({ name }: { name: string }) => name === "test").id, DEVICE_ID: device.id },
        ...{ PRODUCT: product, SERIAL: "hub-1", OLD_GATEWAY_TOKEN_ID: gateway.gatewayToken.id },
      };
      const shown = 'printf "\\n%s\\n%s\\n%s" "$new_key" "$new_token" "$new_gateway_token"';
      const script = ["set -euo pipefail", ...blocks, shown].join("\n");
      const { stdout } = await promisify(execFile)("bash", ["--norc", "-c", script], { cwd: folder, env });
      const [newKey, newToken, newGatewayToken] = stdout.split("\n").slice(-3);

      expect((await api.operator("GET", "/v1/operator-keys")).status).toBe(401);
      expect((await api.as(newKey)("GET", "/v1/operator-keys")).status).toBe(200);
      expect((await device.call("POST", "/v1/check", { json: {} })).status).toBe(401);
      expect((await api.as(newToken)("POST", "/v1/check", { json: {} })).status).toBe(200);
      expect((await api.as(gateway.token)("POST", "/v1/check", { json: {}, headers: serial })).status).toBe(401);
      const served = await api.as(newGatewayToken)("POST", "/v1/check", { json: {}, headers: serial });
      expect(served.status).toBe(200);
      expect((await api.as(newKey)("GET", "/v1/audit?limit=6")).body.items).toMatchObject([
        { action: "gateway_token.revoke" },
        { action: "gateway_token.create" },
        { action: "device.revoke_tokens" },
        { action: "device.rotate_token" },
        { action: "operator_key.revoke" },
        { action: "operator_key.create" },
      ]);
    } finally {
      await api.close();
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("the three steps of the URL key's rotation: each process accepts what the others sign, until the old key is gone", async () => {
    const artifacts = await mkdtemp(join(tmpdir(), "ota-artifacts-"));
    const env = { DATABASE_URL: await createTestDatabase(), OTA_ARTIFACT_DIR: artifacts };
    const key = (byte: number) => Buffer.alloc(32, byte).toString("base64");
    const start = (by: number, accepted: string) =>
      startServiceProcess({ env: { ...env, OTA_URL_SIGNING_KEY: key(by), OTA_URL_ACCEPTED_KEYS: accepted } });
    const untold = await start(1, "");
    const told = await start(1, key(2));
    const renewed = await start(2, key(1));
    const done = await start(2, "");
    try {
      const { tokens } = await seedFleet(untold.url, { devices: 1 });
      const [token = ""] = tokens;
      const checked = async (service: ListeningService) => (await check(service.url, token)).body;
      const headers = { authorization: `Bearer ${token}` };
      const first = await checked(untold);
      const [old, fresh] = [first, await checked(renewed)].map(({ firmware }) => {
        const { pathname, search } = new URL(firmware.url);
        return `${pathname}${search}`;
      });
      const statuses = async (service: ListeningService) => [
        (await fetch(`${service.url}${old}`)).status,
        (await fetch(`${service.url}${fresh}`)).status,
      ];
      // Without the first step, what a process of the second has signed is refused by those that are not there yet.
      expect(await statuses(untold)).toEqual([200, 403]);
      expect(await statuses(told)).toEqual([200, 200]);
      expect(await statuses(renewed)).toEqual([200, 200]);
      expect(await statuses(done)).toEqual([403, 200]);

      // What a URL that is refused costs: nothing but another check, or the device's own token.
      expect(await (await fetch(`${done.url}${old}`)).json()).toMatchObject({ code: "SIGNED_URL_INVALID" });
      expect((await fetch(`${done.url}${old}`, { headers })).status).toBe(200);
      const again = await checked(done);
      expect(again.attempt.id).toBe(first.attempt.id);
      expect((await fetch(again.firmware.url)).status).toBe(200);
    } finally {
      await Promise.all([untold, told, renewed, done].map((service) => service.dispose()));
      await rm(artifacts, { recursive: true, force: true });
    }
  });
});
