import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { createTestDatabase, hasPostgresBinaries } from "@ota/testkit";
import { expect, test } from "vitest";
import { call, check, seedFleet } from "../service/operator-client.ts";
import { startServiceProcess } from "../service/service-process.ts";

const PAGE = resolve(import.meta.dirname, "../../../../docs/operate-backup.md");

/** The SHA-256 of an empty file. */
const NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** The programs come with the server's, and must not be older than it. */
const canDump = hasPostgresBinaries && !process.env["TEST_DATABASE_URL"];

test.skipIf(!canDump)(
  "a service restored from a backup by the page's commands serves its devices, those too that moved on since",
  { timeout: 180_000 },
  async () => {
    const blocks = [...(await readFile(PAGE, "utf8")).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block);
    expect(blocks).toHaveLength(3);
    const [backUp = "", verify = "", restore = ""] = blocks;
    const folder = await mkdtemp(join(tmpdir(), "ota-backup-"));
    const env = {
      PATH: process.env["PATH"],
      BACKUP: join(folder, "backup"),
      ...{ DATABASE_URL: await createTestDatabase(), OTA_ARTIFACT_DIR: join(folder, "artifacts") },
      ...{ NEW_DATABASE_URL: await createTestDatabase(), NEW_ARTIFACT_DIR: join(folder, "restored") },
    };
    await mkdir(join(env.BACKUP, "artifacts"), { recursive: true });
    const run = (block: string, other: { readonly BACKUP?: string } = {}) => {
      const script = `set -euo pipefail\n${block}`;
      return promisify(execFile)("bash", ["--norc", "-c", script], { env: { ...env, ...other } });
    };
    const report = (url: string, token: string, attemptId: number) =>
      call(url, `/v1/attempts/${attemptId}/reports`, { token, json: { state: "downloading" } });
    const { DATABASE_URL, OTA_ARTIFACT_DIR, NEW_DATABASE_URL, NEW_ARTIFACT_DIR } = env;

    const original = await startServiceProcess({ env: { DATABASE_URL, OTA_ARTIFACT_DIR } });
    const lost: { token: string; attemptId: number } = { token: "", attemptId: 0 };
    let tokens: readonly string[];
    try {
      ({ tokens } = await seedFleet(original.url, { devices: 3 }));
      const open = await check(original.url, tokens[0] ?? "");
      await run(backUp);
      await run(verify);
      expect(await readFile(join(env.BACKUP, "missing"), "utf8")).toBe("");
      const spoiled = join(folder, "spoiled");
      await cp(env.BACKUP, spoiled, { recursive: true });
      const [known = ""] = (await readFile(join(spoiled, "known"), "utf8")).split("\n");
      await writeFile(join(spoiled, "artifacts", known), "other content");
      await expect(run(verify, { BACKUP: spoiled })).rejects.toMatchObject({ stdout: `${known}: FAILED\n` });
      await rm(join(spoiled, "artifacts", known));
      await writeFile(join(spoiled, "artifacts", NOTHING), "");
      await run(verify, { BACKUP: spoiled });
      expect(await readFile(join(spoiled, "missing"), "utf8")).toBe(`${known}\n`);

      // What the backup does not know: an update that is finished, an attempt that is begun, a device that is new.
      await call(original.url, "/v1/check", { token: tokens[0] ?? "", json: { version: "2.0.0" } });
      lost.attemptId = (await check(original.url, tokens[1] ?? "")).body.attempt.id;
      expect(lost.attemptId).toBeGreaterThan(open.body.attempt.id);
      lost.token = (await call(original.url, "/v1/products/lamp/devices", { json: { serial: "new" } })).body.token;
    } finally {
      await original.dispose();
    }

    await run(restore);
    const restored = await startServiceProcess({
      env: { DATABASE_URL: NEW_DATABASE_URL, OTA_ARTIFACT_DIR: NEW_ARTIFACT_DIR },
    });
    try {
      const [finished = "", begun = "", untouched = ""] = tokens;
      expect((await call(restored.url, "/readyz", { method: "GET" })).status).toBe(200);
      const now = await call(restored.url, "/v1/check", { token: finished, json: { version: "2.0.0" } });
      expect(now.body).toMatchObject({ decision: "none", reason: "UP_TO_DATE" });
      const { items } = (await call(restored.url, "/v1/upgrades?state=succeeded", { method: "GET" })).body;
      expect(items).toHaveLength(1);

      expect(await report(restored.url, begun, lost.attemptId)).toMatchObject({
        status: 404,
        body: { code: "NOT_FOUND" },
      });
      const again = (await check(restored.url, begun)).body;
      expect(again.attempt.id).toBeGreaterThan(1_000_000);
      expect((await report(restored.url, begun, again.attempt.id)).status).toBe(200);
      expect(await check(restored.url, lost.token)).toMatchObject({
        status: 401,
        body: { code: "DEVICE_TOKEN_INVALID" },
      });

      const offered = (await check(restored.url, untouched)).body;
      const file = await fetch(offered.firmware.url);
      expect(Buffer.from(await file.arrayBuffer()).toString()).toBe("firmware");
    } finally {
      await restored.dispose();
      await rm(folder, { recursive: true, force: true });
    }
  },
);
