import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

describe("the artifact folder at the start", { skip: !hasPostgres }, () => {
  let root: string;
  let url: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "ota-folders-"));
    url = await createTestDatabase();
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const start = (folder: string, databaseUrl = url) =>
    startApi({ artifactDirectory: join(root, folder), env: { DATABASE_URL: databaseUrl } });
  const used = async (work: (api: TestApi) => Promise<unknown>, folder: string, databaseUrl = url) => {
    const api = await start(folder, databaseUrl);
    await work(api).finally(() => api.close());
  };
  const upload = async (api: TestApi) => aFirmware(api, { product: await aProduct(api), release: false });

  test("may be empty while the database knows no file, and any new one while all lie elsewhere", async () => {
    await used(async () => {}, "first");
    await used(async (api) => {
      const json = { version: "1.0.0", sourceUrl: "https://cdn.example/a", sizeBytes: 1, sha256: "a".repeat(64) };
      const made = await api.operator("POST", `/v1/products/${await aProduct(api)}/firmware/by-url`, { json });
      expect(made.status).toBe(201);
    }, "second");
    await used(upload, "third");
  });

  test("is refused when it is empty and the database knows files, with what to do", async () => {
    await used(upload, "right");
    const refused = start("empty");
    await expect(refused).rejects.toMatchObject({ name: "ArtifactError", code: "ARTIFACT_DIR_REFUSED" });
    await expect(refused).rejects.toThrow(/empty\b.* has no installation\.json.*OTA_ARTIFACT_DIR.*backup/s);
    await used(upload, "right");
  });

  test("is refused when it is another installation's", async () => {
    await used(upload, "theirs", await createTestDatabase());
    await expect(start("theirs")).rejects.toThrow(/belongs to the installation/);
    await used(upload, "ours");
    await expect(start("theirs")).rejects.toThrow(/belongs to the installation/);
  });
});
