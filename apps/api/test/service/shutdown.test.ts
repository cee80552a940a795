import { type ClientRequest, request } from "node:http";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import postgres from "postgres";
import { afterEach, describe, expect, test } from "vitest";
import { call, check, seedFleet } from "./operator-client.ts";
import { type ListeningService, startServiceProcess, TEST_OPERATOR_KEY } from "./service-process.ts";

const services: ListeningService[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.dispose())));

async function start(env: Readonly<Record<string, string>> = {}): Promise<ListeningService> {
  const service = await startServiceProcess({ env: { DATABASE_URL: await createTestDatabase(), ...env } });
  services.push(service);
  return service;
}

/** An upload of which the first half has been sent. */
async function halfAnUpload(
  url: string,
): Promise<{ readonly upload: ClientRequest; readonly status: Promise<number> }> {
  await call(url, "/v1/products", { json: { name: "lamp" } });
  const upload = request(`${url}/v1/products/lamp/firmware?version=1.0.0`, {
    method: "POST",
    headers: { authorization: `Bearer ${TEST_OPERATOR_KEY}`, "content-length": 8 },
  });
  const status = new Promise<number>((resolve, reject) => {
    upload.on("response", (response) => resolve(response.statusCode ?? 0)).on("error", reject);
  });
  status.catch(() => {});
  await new Promise<void>((resolve) => void upload.write("firm", () => resolve()));
  return { upload, status };
}

describe.skipIf(!hasPostgres)("the end of the service", { timeout: 120_000 }, () => {
  test("after SIGTERM requests in flight finish, new ones are refused, and what was in memory is written", async () => {
    const DATABASE_URL = await createTestDatabase();
    const service = await start({ DATABASE_URL });
    const { tokens } = await seedFleet(service.url, { devices: 1 });
    const { upload, status } = await halfAnUpload(service.url);
    expect((await check(service.url, tokens[0] ?? "")).status).toBe(200);
    service.kill("SIGTERM");
    await expect.poll(() => call(service.url, "/v1/check").catch(() => "refused")).toBe("refused");
    upload.end("ware");
    expect(await status).toBe(201);
    expect(await service.exited).toBe(0);
    const sql = postgres(DATABASE_URL, { max: 1 });
    expect(await sql`select last_seen_at is not null as seen from devices`).toEqual([{ seen: true }]);
    await sql.end();
    expect(service.log()).not.toContain(`"level":"error"`);
  });

  test("for OTA_SHUTDOWN_DELAY_MS it says at /readyz that it ends, and answers everybody, each time as the connection's last", async () => {
    const delayMs = 3000;
    const service = await start({ OTA_SHUTDOWN_DELAY_MS: String(delayMs) });
    const { tokens } = await seedFleet(service.url, { devices: 1 });
    const startedAt = performance.now();
    service.kill("SIGTERM");
    const readiness = () => call(service.url, "/readyz", { method: "GET" });
    await expect.poll(async () => (await readiness()).status, { interval: 20 }).toBe(503);
    expect(performance.now() - startedAt).toBeLessThan(delayMs);
    expect((await readiness()).body).toEqual({ status: "ending", degraded: [], unavailable: [] });
    expect((await call(service.url, "/healthz", { method: "GET" })).status).toBe(200);
    while (performance.now() - startedAt < delayMs * 0.6) {
      const answer = await check(service.url, tokens[0] ?? "");
      expect(answer.status).toBe(200);
      expect(answer.headers.get("connection")).toBe("close");
    }
    expect(await service.exited).toBe(0);
    expect(performance.now() - startedAt).toBeGreaterThan(delayMs);
  });

  test("a second signal ends it at once within the delay as well", async () => {
    const service = await start({ OTA_SHUTDOWN_DELAY_MS: "600000" });
    service.kill("SIGTERM");
    await expect.poll(service.log).toContain('"signal":"SIGTERM"');
    service.kill("SIGTERM");
    expect(await service.exited).toBe(143);
  });

  test("a request that does not finish is cut after OTA_SHUTDOWN_TIMEOUT_MS, and nothing of it is kept", async () => {
    const service = await start({ OTA_SHUTDOWN_TIMEOUT_MS: "300" });
    const { status } = await halfAnUpload(service.url);
    const startedAt = performance.now();
    service.kill("SIGTERM");
    await expect(status).rejects.toThrow();
    expect(await service.exited).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(5000);
    expect(service.log()).toContain("were cut");
  });

  test("an error that nobody handles ends it with 1, and its parameters are in neither log nor terminal", async () => {
    const service = await startServiceProcess({
      env: { DATABASE_URL: await createTestDatabase() },
      preload: `process.on("SIGUSR2", () => { throw Object.assign(new Error("planted"), { parameters: ["hun" + "ter2"] }); });`,
    });
    services.push(service);
    service.kill("SIGUSR2");
    expect(await service.exited).toBe(1);
    expect(service.log()).toMatch(/"level":"fatal".*"message":"planted"/);
    expect(service.log() + service.errors()).not.toContain("hunter2");
  });

  test("a second signal ends it at once", async () => {
    const service = await start();
    const { status } = await halfAnUpload(service.url);
    service.kill("SIGTERM");
    await expect.poll(service.log).toContain('"signal":"SIGTERM"');
    const startedAt = performance.now();
    service.kill("SIGTERM");
    expect(await service.exited).toBe(143);
    expect(performance.now() - startedAt).toBeLessThan(2000);
    await expect(status).rejects.toThrow();
  });
});
