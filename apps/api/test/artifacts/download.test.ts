import { readdir, readlink, rm } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { hasPostgres } from "@ota/testkit";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createArtifactUrls } from "../../src/artifacts/artifact-urls.ts";
import { aDevice, aFirmware, aProduct, type UploadedFirmware } from "../support/fleet.ts";
import { type Caller, startApi, type TestApi, URL_SIGNING_KEY } from "../support/start-api.ts";

describe("GET /v1/firmware/{firmwareId}/artifact", { skip: !hasPostgres }, () => {
  let api: TestApi;
  let product: string;
  let firmware: UploadedFirmware;
  let device: Caller;
  let path: string;
  let etag: string;

  beforeAll(async () => {
    // Statements are counted here: those of the background jobs would be among them.
    api = await startApi({ env: { OTA_SWEEP_INTERVAL_MS: "3600000" } });
    product = await aProduct(api);
    firmware = await aFirmware(api, { product, sizeBytes: 300_000 });
    device = (await aDevice(api, { product })).call;
    await device("POST", "/v1/check");
    path = `/v1/firmware/${firmware.id}/artifact`;
    etag = `"${firmware.sha256}"`;
  });
  afterAll(() => api.close());

  test("gives a device what it was offered, whole, with size, hash and name", async () => {
    const answer = await device("GET", path);
    expect(answer.status).toBe(200);
    expect(answer.bytes.equals(firmware.bytes)).toBe(true);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-length": "300000",
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename="${product}-2.0.0.bin"`,
      "accept-ranges": "bytes",
      "cache-control": "private, max-age=31536000, immutable, no-transform",
      "x-content-type-options": "nosniff",
      "repr-digest": `sha-256=:${Buffer.from(firmware.sha256, "hex").toString("base64")}:`,
      etag,
    });
  });

  test("HEAD answers the same headers without a byte, and knows no ranges", async () => {
    const answer = await device("HEAD", path, { headers: { range: "bytes=0-9" } });
    expect([answer.status, answer.headers.get("content-length"), answer.headers.get("etag")]).toEqual([
      200,
      "300000",
      etag,
    ]);
    expect(answer.bytes).toHaveLength(0);
  });

  test.each([
    ["bytes=0-9", 0, 10],
    ["bytes=299990-", 299_990, 300_000],
    ["bytes=-10", 299_990, 300_000],
    ["bytes=299999-299999", 299_999, 300_000],
    ["bytes=299990-999999", 299_990, 300_000],
  ])("Range: %s gives exactly these bytes", async (range, start, end) => {
    const answer = await device("GET", path, { headers: { range } });
    expect(answer.status).toBe(206);
    expect(answer.headers.get("content-range")).toBe(`bytes ${start}-${end - 1}/300000`);
    expect(answer.headers.get("content-length")).toBe(String(end - start));
    expect(answer.bytes.equals(firmware.bytes.subarray(start, end))).toBe(true);
  });

  test.each(["bytes=300000-", "bytes=999999-", "bytes=-0"])(
    "Range: %s lies outside: 416 with the size",
    async (range) => {
      const answer = await device("GET", path, { headers: { range } });
      expect([answer.status, answer.body.code]).toEqual([416, "RANGE_NOT_SATISFIABLE"]);
      expect(answer.headers.get("content-range")).toBe("bytes */300000");
    },
  );

  test.each(["bytes=0-1,5-6", "lines=1-2", "bytes=9-1", "nonsense"])(
    "Range: %s is ignored: the whole",
    async (range) => {
      const answer = await device("GET", path, { headers: { range } });
      expect([answer.status, answer.bytes.length]).toEqual([200, 300_000]);
    },
  );

  test("If-Range continues the same file, and starts anew with any other or a weak one", async () => {
    const ranged = (ifRange: string) => device("GET", path, { headers: { range: "bytes=10-19", "if-range": ifRange } });
    expect((await ranged(etag)).status).toBe(206);
    for (const other of [`"${"0".repeat(64)}"`, `W/${etag}`, "Wed, 21 Oct 2026 07:28:00 GMT"]) {
      const answer = await ranged(other);
      expect([answer.status, answer.bytes.length]).toEqual([200, 300_000]);
    }
  });

  test.each([(tag: string) => tag, (tag: string) => `W/${tag}`, (tag: string) => `"x", ${tag}`, () => "*"])(
    "If-None-Match with what the client has: 304 without a body (%#)",
    async (header) => {
      const answer = await device("GET", path, { headers: { "if-none-match": header(etag), range: "bytes=0-9" } });
      expect([answer.status, answer.bytes.length, answer.headers.get("etag")]).toEqual([304, 0, etag]);
      expect(answer.headers.get("cache-control")).toContain("immutable");
    },
  );

  test("what a device was not offered does not exist for it", async () => {
    const stranger = (await aDevice(api, { product: await aProduct(api) })).call;
    const notAsked = (await aDevice(api, { product })).call;
    const unreleased = await aFirmware(api, { product, version: "3.0.0", release: false });
    for (const answer of [
      await stranger("GET", path),
      await notAsked("GET", path),
      await device("GET", `/v1/firmware/${unreleased.id}/artifact`),
      await device("GET", "/v1/firmware/0197b1c0-0000-7000-8000-00000000ffff/artifact"),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([404, "NOT_FOUND"]);
    }
  });

  test("a token that is none is 401, no credentials as well", async () => {
    expect((await api.as("x".repeat(43))("GET", path)).body.code).toBe("DEVICE_TOKEN_INVALID");
    expect((await api.as(undefined)("GET", path)).body.code).toBe("CREDENTIALS_MISSING");
  });

  describe("by the signed URL of a check's answer", () => {
    const anybody = () => api.as(undefined);
    const signedUrl = async (): Promise<string> => (await device("POST", "/v1/check")).body.firmware.url;

    test("needs no token, and knows ranges and HEAD", async () => {
      const url = await signedUrl();
      expect((await anybody()("GET", url)).bytes.equals(firmware.bytes)).toBe(true);
      expect((await anybody()("GET", url, { headers: { range: "bytes=0-0" } })).status).toBe(206);
      expect((await anybody()("HEAD", url)).status).toBe(200);
    });

    test("is refused once it has expired, and when anything in it is changed", async () => {
      const url = await signedUrl();
      const other = await aFirmware(api, { product, version: "2.0.1" });
      const stale = createArtifactUrls({
        ...{ key: URL_SIGNING_KEY, validSeconds: 60 },
        nowMs: () => Date.now() - 3_600_000,
      });
      for (const forged of [
        url.replace(/expires=(\d+)/, (_, expires) => `expires=${Number(expires) + 1}`),
        url.replace(firmware.id, other.id),
        url.replace(/signature=./, (match) => `signature=${match.endsWith("A") ? "B" : "A"}`),
        stale.sign(firmware.id, { publicUrl: api.url }),
      ]) {
        const answer = await anybody()("GET", forged);
        expect([answer.status, answer.body.code]).toEqual([403, "SIGNED_URL_INVALID"]);
      }
    });

    test("a withdrawn firmware is given to nobody by URL", async () => {
      const { id } = await aFirmware(api, { product: await aProduct(api) });
      const url = createArtifactUrls({ key: URL_SIGNING_KEY, validSeconds: 60 }).sign(id, { publicUrl: api.url });
      expect((await anybody()("GET", url)).status).toBe(200);
      await api.operator("POST", `/v1/firmware/${id}/withdraw`);
      const gone = await anybody()("GET", url);
      expect([gone.status, gone.body.code]).toEqual([410, "ARTIFACT_WITHDRAWN"]);
    });

    test("a URL that is given to a device past the download outlives a withdrawal: it may finish", async () => {
      const own = await aProduct(api);
      const { id, bytes } = await aFirmware(api, { product: own });
      const { call } = await aDevice(api, { product: own });
      const before = (await call("POST", "/v1/check")).body;
      await call("POST", `/v1/attempts/${before.attempt.id}/reports`, { json: { state: "downloaded" } });
      const after = (await call("POST", "/v1/check")).body;
      expect(after).toMatchObject({ decision: "update", attempt: { id: before.attempt.id, state: "downloaded" } });
      await api.operator("POST", `/v1/firmware/${id}/withdraw`);
      expect((await anybody()("GET", before.firmware.url)).status).toBe(410);
      expect((await anybody()("GET", after.firmware.url)).bytes.equals(bytes)).toBe(true);
      expect((await anybody()("GET", after.firmware.url.replace("&finishing=true", ""))).status).toBe(403);
    });
  });

  test("costs one statement that reads, however often it is asked; a bad signature costs none", async () => {
    await api.db.execute(sql`create extension if not exists pg_stat_statements`);
    const url: string = (await device("POST", "/v1/check")).body.firmware.url;
    const statementsOf = async (work: () => Promise<unknown>) => {
      const database = sql`(select oid from pg_database where datname = current_database())`;
      await api.db.execute(sql`select pg_stat_statements_reset(0, ${database}, 0)`);
      await work();
      const rows = await api.db.execute(
        sql`select query, calls::int from pg_stat_statements where dbid = ${database} and query not like '%pg_stat_%'`,
      );
      return [...(rows as unknown as Iterable<{ query: string; calls: number }>)];
    };
    const tenTimes = (ask: () => Promise<unknown>) => async () => {
      for (let i = 0; i < 10; i += 1) await ask();
    };
    for (const ask of [
      () => device("GET", path, { headers: { range: "bytes=0-9" } }),
      () => api.as(undefined)("GET", url, { headers: { range: "bytes=0-9" } }),
    ]) {
      const statements = await statementsOf(tenTimes(ask));
      expect(statements).toEqual([{ query: expect.stringMatching(/^select /), calls: 10 }]);
    }
    expect(await statementsOf(tenTimes(() => api.as(undefined)("GET", `${url}x`)))).toEqual([]);
  });

  test("a client that goes away in the middle leaves nothing open", async () => {
    const large = await aFirmware(api, { product: await aProduct(api), sizeBytes: 8 * 1024 * 1024 });
    const url = createArtifactUrls({ key: URL_SIGNING_KEY, validSeconds: 60 }).sign(large.id, { publicUrl: api.url });
    await new Promise<void>((resolve, reject) => {
      const asked = request(url, (response) => {
        response.once("data", () => asked.destroy());
        response.on("error", () => {}).once("close", () => resolve());
      });
      asked.on("error", reject).end();
    });
    const openFiles = async () => {
      const links = (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
      return (await Promise.all(links)).filter((target) => target.endsWith(large.sha256));
    };
    await expect.poll(openFiles, { timeout: 20_000 }).toEqual([]);
  });

  test("bytes that the store has lost are a 500 with a code of its own, and such firmware is not released", async () => {
    const lost = await aFirmware(api, { product: await aProduct(api) });
    const draft = await aFirmware(api, { product: await aProduct(api), release: false });
    for (const { sha256 } of [lost, draft]) await rm(join(api.artifactDirectory, sha256));
    const url = createArtifactUrls({ key: URL_SIGNING_KEY, validSeconds: 60 }).sign(lost.id, { publicUrl: api.url });
    for (const answer of [
      await api.as(undefined)("GET", url),
      await api.operator("POST", `/v1/firmware/${draft.id}/release`),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([500, "ARTIFACT_MISSING"]);
    }
  });
});
