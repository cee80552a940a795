import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PostgresService, startPostgresService } from "./postgres-service.ts";

const MiB = 1024 * 1024;
/** 300 in the full form. It must be well above the limit: a service that kept the file in memory would show. */
const SIZE_MIB = Number(process.env["OTA_TEST_ARTIFACT_MIB"] ?? 120);
const LIMIT_MIB = 60;

/** Random enough not to be compressed or shared on the way, and never in memory as a whole. */
const block = randomBytes(MiB);
const sha256 = createHash("sha256");
for (let i = 0; i < SIZE_MIB; i += 1) sha256.update(block);
const expectedSha256 = sha256.digest("hex");

describe("the memory of a service", { skip: !hasPostgres || !existsSync("/proc/self/clear_refs") }, () => {
  let service: PostgresService;
  let firmwareId: string;
  let deviceToken: string;
  beforeAll(async () => {
    service = await startPostgresService();
    await call("POST", "/v1/products", { name: "hub" });
  });
  afterAll(() => service.stop());

  test(`grows by at most ${LIMIT_MIB} MiB while ${SIZE_MIB} MiB are uploaded`, { timeout: 240_000 }, async () => {
    const { grownMiB, result } = await measured(async () => {
      const path = `/v1/products/hub/firmware?version=2.0.0&sha256=${expectedSha256}&sizeBytes=${SIZE_MIB * MiB}`;
      const sending = send("POST", path, service.operatorKey, { "content-length": SIZE_MIB * MiB });
      const answer = answerOf(sending);
      await pipeline(Readable.from(blocks()), sending);
      return json(await answer) as Promise<{ id: string; artifact: { sha256: string } }>;
    });
    expect(result.artifact.sha256).toBe(expectedSha256);
    expect(grownMiB).toBeLessThanOrEqual(LIMIT_MIB);
    firmwareId = result.id;
    await call("POST", `/v1/firmware/${firmwareId}/release`, { startRollout: true });
    deviceToken = ((await call("POST", "/v1/products/hub/devices", { serial: "one" })) as { token: string }).token;
    await call("POST", "/v1/check", {}, deviceToken);
  });

  test.each([
    ["one client as fast as it can", 1, 0],
    ["four clients at once", 4, 0],
    ["a client that reads slowly", 1, 5],
  ])(
    `grows by at most ${LIMIT_MIB} MiB while ${SIZE_MIB} MiB are downloaded by %s`,
    { timeout: 240_000 },
    async (_who, clients, pauseMs) => {
      const { grownMiB, result } = await measured(() =>
        Promise.all(Array.from({ length: clients }, () => download(pauseMs))),
      );
      expect(new Set(result)).toEqual(new Set([expectedSha256]));
      expect(grownMiB).toBeLessThanOrEqual(LIMIT_MIB);
    },
  );

  async function download(pauseMs: number): Promise<string> {
    const sending = send("GET", `/v1/firmware/${firmwareId}/artifact`, deviceToken);
    const answer = answerOf(sending);
    sending.end();
    const hash = createHash("sha256");
    let unpaused = 0;
    for await (const chunk of await answer) {
      hash.update(chunk as Buffer);
      unpaused += (chunk as Buffer).length;
      if (pauseMs > 0 && unpaused > MiB) {
        unpaused = 0;
        await sleep(pauseMs);
      }
    }
    return hash.digest("hex");
  }

  /** How far the peak of the process's resident memory, as the kernel keeps it, lies above what it was before. */
  async function measured<T>(work: () => Promise<T>): Promise<{ grownMiB: number; result: T }> {
    await sleep(300);
    // Writing 5 makes the kernel begin a new peak (proc(5)).
    await writeFile(`/proc/${service.pid}/clear_refs`, "5");
    const idle = await statusMiB("VmRSS");
    const result = await work();
    const peak = await statusMiB("VmHWM");
    const grownMiB = Math.round((peak - idle) * 10) / 10;
    console.log(
      `resident memory: ${idle.toFixed(1)} MiB idle, ${peak.toFixed(1)} MiB at its peak, grown by ${grownMiB} MiB`,
    );
    return { grownMiB, result };
  }

  async function statusMiB(field: string): Promise<number> {
    const status = await readFile(`/proc/${service.pid}/status`, "utf8");
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
  }

  async function call(method: string, path: string, body: object, token = service.operatorKey): Promise<unknown> {
    const sending = send(method, path, token, { "content-type": "application/json" });
    const answer = answerOf(sending);
    sending.end(JSON.stringify(body));
    return json(await answer);
  }

  function send(
    method: string,
    path: string,
    token: string,
    headers: Record<string, string | number> = {},
  ): ClientRequest {
    return request(`${service.url}${path}`, { method, headers: { ...headers, authorization: `Bearer ${token}` } });
  }
});

function* blocks(): Generator<Buffer> {
  for (let i = 0; i < SIZE_MIB; i += 1) yield block;
}

function answerOf(sending: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sending.on("error", reject).on("response", (response) => {
      const { statusCode = 0 } = response;
      if (statusCode < 300) resolve(response);
      else reject(new Error(`answered ${statusCode}`));
    });
  });
}
