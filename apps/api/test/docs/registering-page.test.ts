import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { hasPostgres } from "@ota/testkit";
import { expect, test } from "vitest";
import { startApi } from "../support/start-api.ts";

const PAGE = resolve(import.meta.dirname, "../../../../docs/registering-fleets.md");

test.skipIf(!hasPostgres)("the commands of the page about registering fleets do what it says", async () => {
  const page = await readFile(PAGE, "utf8");
  const blocks = [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block);
  expect(blocks).toHaveLength(6);
  const api = await startApi();
  const folder = await mkdtemp(join(tmpdir(), "ota-page-"));
  try {
    const env = { PATH: process.env["PATH"] ?? "", OTA_URL: api.url, OTA_OPERATOR_KEY: api.operatorKey };
    const script = ["set -euo pipefail", ...blocks].join("\n");
    await promisify(execFile)("bash", ["-c", script], { cwd: folder, env });

    const tokens = await readFile(join(folder, "tokens.csv"), "utf8");
    expect(tokens).toMatch(/^serial,id,outcome,token\r\nhub-0001,.*,registered,[\w-]{43}\r\nhub-0002,/);
    const { items } = (await api.operator("GET", "/v1/devices?product=hub")).body;
    expect(items).toMatchObject([
      { serial: "hub-0004", registeredBy: "gateway", reportedVersion: "1.0.0" },
      { serial: "hub-0003", attributes: { ram: 512, secureBoot: true } },
      { serial: "hub-0002", groups: ["berlin"], timeZone: "Europe/Berlin" },
    ]);
    const { items: audit } = (await api.operator("GET", "/v1/audit?action=device.update")).body;
    expect(audit).toMatchObject([
      {
        before: { attributes: { site: "Berlin, Mitte" }, groups: ["berlin", "pilot"], blocked: false },
        after: { groups: ["berlin", "canary", "pilot"], blocked: true, blockedReason: "stolen" },
      },
    ]);
  } finally {
    await api.close();
    await rm(folder, { recursive: true, force: true });
  }
});
