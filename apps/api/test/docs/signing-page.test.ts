import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

const PAGE = fileURLToPath(new URL("../../../../docs/signing-firmware.md", import.meta.url));

describe("docs/signing-firmware.md", { skip: !hasPostgres }, () => {
  let api: TestApi;
  let folder: string;
  let commands: string[];

  beforeAll(async () => {
    api = await startApi();
    folder = await mkdtemp(join(tmpdir(), "ota-signing-"));
    commands = [...(await readFile(PAGE, "utf8")).matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
    expect(await api.operator("POST", "/v1/products", { json: { name: "prime-hub" } })).toMatchObject({ status: 201 });
    await writeFile(join(folder, "prime-hub-2.1.0.bin"), randomBytes(5000));
  });
  afterAll(async () => {
    await api.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** In one shell and in their order, as somebody at a terminal would. */
  const run = (blocks: readonly string[]) =>
    promisify(execFile)("bash", ["--norc", "-c", `set -euo pipefail\n${blocks.join("")}`], {
      cwd: folder,
      env: { PATH: process.env["PATH"], OTA_URL: api.url, OTA_OPERATOR_KEY: api.operatorKey },
    });

  test("its commands lead from a new key to a signed release that a device can verify", async () => {
    expect(commands).toHaveLength(5);
    const { stdout } = await run(commands);
    expect(stdout).toContain("Signature Verified Successfully");

    const device = await aDevice(api, { product: "prime-hub" });
    const offered = (await device.call("POST", "/v1/check")).body;
    expect(offered.firmware.signature).toBe(await readFile(join(folder, "signature"), "utf8"));
    const { version, sizeBytes, sha256 } = offered.firmware;
    expect(await readFile(join(folder, "offered"), "utf8")).toBe(
      `ota-fw-v1\n${offered.device.product}\n${version}\n${sizeBytes}\n${sha256}`,
    );
    const stored = (await device.call("GET", offered.firmware.url)).bytes;
    expect(stored.equals(await readFile(join(folder, "prime-hub-2.1.0.bin")))).toBe(true);

    const changed = commands.at(-1)?.replace("ota-fw-v1", "ota-fw-v2") ?? "";
    const facts = `product=prime-hub version=2.1.0 size=${sizeBytes} sha256=${sha256}\n`;
    await expect(run([facts, changed])).rejects.toMatchObject({
      stdout: expect.stringContaining("Signature Verification Failure"),
    });
  });
});
