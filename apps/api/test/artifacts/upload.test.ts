import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

const exec = promisify(execFile);
const MiB = 1024 * 1024;

describe("POST /v1/products/{product}/firmware", { skip: !hasPostgres }, () => {
  let api: TestApi;
  let product: string;
  beforeAll(async () => {
    api = await startApi({ maxArtifactBytes: 4 * MiB });
    product = await aProduct(api);
  });
  afterAll(() => api.close());

  const upload = (query: string, bytes: Uint8Array, headers: Record<string, string> = {}) =>
    api.operator("POST", `/v1/products/${product}/firmware?${query}`, { bytes, headers });
  const stored = async () =>
    (await readdir(api.artifactDirectory)).filter((name) => name !== "installation.json").sort();
  const versions = async (): Promise<string[]> =>
    (await api.operator("GET", `/v1/products/${product}/firmware`)).body.items.map(
      ({ version }: { version: string }) => version,
    );

  test("answers 201 with what was measured, at the address in Location", async () => {
    const bytes = randomBytes(100_000);
    const query = "version=1.2.3&hardwareRevisions=rev-a,rev-b&requiresVersion=1.0.0&fileName=hub%20(2).bin";
    const answer = await upload(query, bytes);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({
      ...{ product, version: "1.2.3", state: "draft", hardwareRevisions: ["rev-a", "rev-b"], requiresVersion: "1.0.0" },
      artifact: { sizeBytes: 100_000, fileName: "hub (2).bin", contentType: "application/octet-stream" },
    });
    expect((await api.operator("GET", answer.headers.get("location") ?? "")).body).toEqual(answer.body);
    expect(await stored()).toContain(answer.body.artifact.sha256);
  });

  test.each([
    ["another SHA-256", `version=9.0.1&sha256=${"0".repeat(64)}`, 1000, 422, "ARTIFACT_SHA256_MISMATCH"],
    ["another size", "version=9.0.2&sizeBytes=999", 1000, 422, "ARTIFACT_SIZE_MISMATCH"],
    ["no byte", "version=9.0.3", 0, 422, "ARTIFACT_EMPTY"],
    ["too many bytes", "version=9.0.4", 4 * MiB + 1, 413, "ARTIFACT_TOO_LARGE"],
    ["an invalid version", "version=nine", 1000, 422, "INVALID_VERSION"],
    ["no version", "", 1000, 422, "FIELDS_INVALID"],
    ["a hash that is none", "version=9.0.5&sha256=abc", 1000, 422, "FIELDS_INVALID"],
    ["a file name with a path", "version=9.0.6&fileName=..%2Fx", 1000, 422, "FIELDS_INVALID"],
    ["a file name with a quote", "version=9.0.7&fileName=a%22b", 1000, 422, "FIELDS_INVALID"],
    ["a file name with a line break", "version=9.0.8&fileName=a%0D%0Ab", 1000, 422, "FIELDS_INVALID"],
  ])("%s: refused, nothing published, nothing left behind", async (_what, query, sizeBytes, status, code) => {
    const [filesBefore, versionsBefore] = [await stored(), await versions()];
    const answer = await upload(query, randomBytes(sizeBytes));
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(await stored()).toEqual(filesBefore);
    expect(await versions()).toEqual(versionsBefore);
  });

  test("the right SHA-256 is right in capitals too", async () => {
    const bytes = randomBytes(100);
    const sha256 = createHash("sha256").update(bytes).digest("hex").toUpperCase();
    expect((await upload(`version=3.0.0&sizeBytes=100&sha256=${sha256}`, bytes)).status).toBe(201);
  });

  test("a version that is taken, or a product that is not there, is refused before the bytes are read", async () => {
    await aFirmware(api, { product, version: "4.0.0" });
    for (const [path, code] of [
      [`/v1/products/${product}/firmware?version=4.0.0`, "ALREADY_EXISTS"],
      ["/v1/products/none-such/firmware?version=4.0.0", "NOT_FOUND"],
    ] as const) {
      const { status, body, sentBytes } = await slowUpload(path, { sizeBytes: 2 * MiB });
      expect([body.code, status >= 400]).toEqual([code, true]);
      expect(sentBytes).toBeLessThan(MiB);
    }
  });

  test("an upload that its Content-Length shows to be too large is refused before its bytes", async () => {
    const { status, body, sentBytes } = await slowUpload(`/v1/products/${product}/firmware?version=4.1.0`, {
      sizeBytes: 8 * MiB,
    });
    expect([status, body.code]).toEqual([413, "ARTIFACT_TOO_LARGE"]);
    expect(sentBytes).toBeLessThan(MiB);
  });

  test("an upload without a length is refused as soon as it exceeds the limit, and its sender reads the answer", async () => {
    const { status, body } = await slowUpload(`/v1/products/${product}/firmware?version=4.2.0`, {
      sizeBytes: 6 * MiB,
      chunked: true,
    });
    expect([status, body.code]).toEqual([413, "ARTIFACT_TOO_LARGE"]);
  });

  test.each(["application/json", "multipart/form-data; boundary=x", "text/plain"])(
    "%s is no file: 415",
    async (type) => {
      const answer = await upload("version=5.0.0", randomBytes(100), { "content-type": type });
      expect([answer.status, answer.body.code]).toEqual([415, "MEDIA_TYPE_UNSUPPORTED"]);
    },
  );

  test("an upload that is cut off leaves nothing published and nothing behind", async () => {
    const before = await stored();
    const path = `/v1/products/${product}/firmware?version=6.0.0`;
    const sending = request(`${api.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${api.operatorKey}`, "content-length": 2 * MiB },
    });
    sending.on("error", () => {});
    sending.write(randomBytes(MiB));
    await expect.poll(async () => (await stored()).some((name) => name.endsWith(".part"))).toBe(true);
    sending.destroy();
    await expect.poll(stored).toEqual(before);
    expect(await versions()).not.toContain("6.0.0");
    expect((await upload("version=6.0.0", randomBytes(100))).status).toBe(201);
  });

  test("of ten uploads of one version at once exactly one succeeds", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => upload("version=7.0.0", randomBytes(50_000))));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(9).fill(409)]);
  });

  test("two versions may have the same bytes", async () => {
    const bytes = randomBytes(1000);
    const [one, two] = [await upload("version=8.0.0", bytes), await upload("version=8.0.1", bytes)];
    expect(two.body.artifact.sha256).toBe(one.body.artifact.sha256);
  });

  /** Sends piece by piece and stops when the answer comes, as a careful client does. */
  async function slowUpload(path: string, options: { sizeBytes: number; chunked?: boolean }) {
    let sentBytes = 0;
    let answered = false;
    const sending = request(`${api.url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${api.operatorKey}`,
        ...(options.chunked ? {} : { "content-length": options.sizeBytes }),
      },
    });
    const answer = new Promise<{ status: number; body: { code: string } }>((resolve, reject) => {
      sending.on("error", reject).on("response", async (response) => {
        answered = true;
        const text = (await response.setEncoding("utf8").toArray()).join("");
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) });
      });
    });
    const piece = Buffer.alloc(64 * 1024, 1);
    while (!answered && sentBytes < options.sizeBytes) {
      await new Promise<void>((resolve) => sending.write(piece, () => resolve()));
      sentBytes += piece.length;
      await sleep(5);
    }
    const result = { ...(await answer), sentBytes };
    sending.destroy();
    return result;
  }
});

describe("an upload to a full disk", { skip: !hasPostgres || process.getuid?.() !== 0 }, () => {
  test("answers 507, leaves nothing behind, and the service goes on", async () => {
    const mount = await mkdtemp(join(tmpdir(), "ota-full-"));
    await exec("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", mount]);
    let api: TestApi | undefined;
    try {
      api = await startApi({ artifactDirectory: mount });
      const product = await aProduct(api);
      const upload = (version: string, sizeBytes: number) =>
        (api as TestApi).operator("POST", `/v1/products/${product}/firmware?version=${version}`, {
          bytes: randomBytes(sizeBytes),
        });
      const answer = await upload("1.0.0", 2 * MiB);
      expect([answer.status, answer.body.code]).toEqual([507, "STORAGE_FULL"]);
      expect(await readdir(mount)).toEqual(["installation.json"]);
      expect((await api.operator("GET", `/v1/products/${product}/firmware`)).body.items).toEqual([]);
      expect((await upload("1.0.0", 100_000)).status).toBe(201);
    } finally {
      await api?.close();
      await exec("umount", [mount]);
      await rm(mount, { recursive: true });
    }
  });
});
