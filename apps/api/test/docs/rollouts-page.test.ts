import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { hasPostgres } from "@ota/testkit";
import { expect, test } from "vitest";
import { aFirmware, aProduct } from "../support/fleet.ts";
import { startApi } from "../support/start-api.ts";

const PAGE = resolve(import.meta.dirname, "../../../../docs/rollouts.md");

test.skipIf(!hasPostgres)("the commands of the page about rollouts do what it says", async () => {
  const page = await readFile(PAGE, "utf8");
  const blocks = [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block);
  expect(blocks).toHaveLength(3);
  const examples = [...page.matchAll(/`((?:\[\{|\{)"(?:days|percentage)".*?)`/g)].map(([, json]) =>
    JSON.parse(json ?? ""),
  );
  expect(examples).toHaveLength(2);
  const api = await startApi();
  try {
    const { id: firmwareId } = await aFirmware(api, { product: await aProduct(api), release: false });
    await api.operator("POST", `/v1/firmware/${firmwareId}/release`);
    const env = {
      ...{ PATH: process.env["PATH"] ?? "", OTA_URL: api.url, OTA_OPERATOR_KEY: api.operatorKey, FIRMWARE: firmwareId },
    };
    const { stdout } = await promisify(execFile)("bash", ["-c", ["set -euo pipefail", ...blocks].join("\n")], { env });

    const figures = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
    expect(figures).toMatchObject({ failures: [], versions: [{ firmware: { id: firmwareId } }] });

    const { items } = (await api.operator("GET", `/v1/rollouts?firmwareId=${firmwareId}`)).body;
    expect(items).toMatchObject([
      {
        ...{ state: "running", percentage: 50, groups: ["pilot"], maxConcurrent: 50 },
        attributeFilter: { all: [{ attribute: "site" }, { attribute: "bootloader" }, { not: { exists: true } }] },
      },
    ]);
    const [window, phases] = examples;
    const made = await api.operator("POST", `/v1/firmware/${firmwareId}/rollouts`, { json: { window, phases } });
    expect(made.body).toMatchObject({ window, phases });
  } finally {
    await api.close();
  }
});
