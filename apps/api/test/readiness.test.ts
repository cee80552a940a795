import { rename } from "node:fs/promises";
import { hasPostgres } from "@ota/testkit";
import { expect, test } from "vitest";
import { aDevice, aProduct } from "./support/fleet.ts";
import { startApi } from "./support/start-api.ts";

test.skipIf(!hasPostgres)("without its artifact folder the service says degraded, and answers checks", async () => {
  const api = await startApi();
  const readiness = async () => {
    const { status, body } = await api.as(undefined)("GET", "/readyz");
    expect(status).toBe(200);
    return body;
  };
  const elsewhere = `${api.artifactDirectory}-elsewhere`;
  try {
    const device = await aDevice(api, { product: await aProduct(api) });
    expect(await readiness()).toEqual({ status: "ready", degraded: [], unavailable: [] });
    await rename(api.artifactDirectory, elsewhere);
    await expect.poll(readiness, { timeout: 10_000 }).toEqual({
      ...{ status: "ready", degraded: ["artifact-store"], unavailable: [] },
    });
    expect((await device.call("POST", "/v1/check")).status).toBe(200);
    await rename(elsewhere, api.artifactDirectory);
    await expect.poll(async () => (await readiness()).degraded, { timeout: 10_000 }).toEqual([]);
  } finally {
    await api.close();
  }
});
