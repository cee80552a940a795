import { hasPostgres, type PostgresServer, startPostgres, startTcpProxy, type TcpProxy } from "@ota/testkit";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { call, check, seedFleet } from "../service/operator-client.ts";
import { type ListeningService, startServiceProcess } from "../service/service-process.ts";
import { type Figures, parseFigures } from "../support/metrics.ts";

const OVERLOADED = "overloaded: checks are turned away";
const OVER = "checks are answered again";

describe.skipIf(!hasPostgres)("load shedding", { timeout: 120_000 }, () => {
  let postgres: PostgresServer;
  let proxy: TcpProxy;
  let service: ListeningService;
  let tokens: readonly string[];
  beforeAll(async () => {
    postgres = await startPostgres();
  }, 120_000);
  afterAll(() => postgres.stop());
  beforeEach(async () => {
    const url = new URL(await postgres.createDatabase());
    proxy = await startTcpProxy({ target: { host: url.hostname, port: Number(url.port) } });
    url.hostname = "127.0.0.1";
    url.port = String(proxy.port);
    service = await startServiceProcess({
      env: {
        DATABASE_URL: url.href,
        OTA_DATABASE_POOL_SIZE: "1",
        OTA_DATABASE_STATEMENT_TIMEOUT_MS: "60000",
        OTA_OVERLOAD_DATABASE_DELAY_MS: "50",
      },
    });
    ({ tokens } = await seedFleet(service.url, { devices: 3 }));
  });
  afterEach(async () => {
    postgres.resume();
    await service.dispose();
    await proxy.close();
  });

  const first = (): string => tokens[0] ?? "";
  const second = (): string => tokens[1] ?? "";
  const count = (text: string): number => service.log().split(text).length - 1;
  const degraded = async () => (await call(service.url, "/readyz", { method: "GET" })).body.degraded as string[];
  const figures = async (): Promise<Figures> => parseFigures(await (await fetch(`${service.url}/metrics`)).text());
  const report = (attemptId: number, state: string) =>
    call(service.url, `/v1/attempts/${attemptId}/reports`, { token: first(), json: { state } });

  test("PostgreSQL paused: checks are turned away at once, reports wait and are stored, and all of it ends by itself", async () => {
    const attempt: number = (await check(service.url, first())).body.attempt.id;
    postgres.pause();
    const waiting = Array.from({ length: 10 }, () => check(service.url, second()));
    await expect.poll(() => count(OVERLOADED), { timeout: 20_000 }).toBe(1);

    const lastWord = report(attempt, "failed");
    const shed = [];
    for (let i = 0; i < 20; i++) {
      const startedAt = performance.now();
      const { status, body, headers } = await check(service.url, second());
      shed.push({
        status,
        code: body.code,
        wait: Number(headers.get("retry-after")),
        tookMs: performance.now() - startedAt,
      });
      expect(body.retryAfterSeconds).toBe(shed.at(-1)?.wait);
    }
    expect(new Set(shed.map(({ status, code }) => `${status} ${code}`))).toEqual(new Set(["503 SERVICE_BUSY"]));
    const times = shed.map(({ tookMs }) => tookMs).sort((one, other) => one - other);
    console.log(`turned away in ${times[10]?.toFixed(1)} ms (median), ${times[19]?.toFixed(1)} ms (longest)`);
    expect(times[10]).toBeLessThan(200);
    const waits = shed.map(({ wait }) => wait);
    expect(new Set(waits).size).toBeGreaterThan(5);
    for (const wait of waits) expect(wait).toSatisfy((seconds: number) => seconds >= 15 && seconds <= 300);
    expect(await degraded()).toContain("capacity");

    postgres.resume();
    expect((await lastWord).status).toBe(200);
    expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([200]));
    await expect.poll(() => count(OVER), { timeout: 20_000 }).toBe(1);
    expect((await check(service.url, second())).status).toBe(200);
    await expect.poll(degraded, { timeout: 5000 }).toEqual([]);
    const after = await figures();
    expect(after.get('ota_checks_shed_total{cause="database"}')).toBe(20);
    expect(after.get('ota_attempt_moves_total{to="failed"}')).toBe(1);
    expect(count(OVERLOADED)).toBe(1);
    expect(count('"code":"SERVICE_BUSY"'), "a line for each check that was turned away").toBe(0);
  });

  test("PostgreSQL slow under a crowd: most checks are turned away, while reports and operators are served", async () => {
    const attempt: number = (await check(service.url, first())).body.attempt.id;
    // Every statement takes longer than the limit, and those of a crowd are behind each other.
    proxy.delay(40);
    const kinds = new Map<string, number>();
    let crowded = true;
    const crowd = Array.from({ length: 100 }, async () => {
      while (crowded) {
        const { status, body } = await check(service.url, second());
        const kind = `${status} ${body.code ?? "ok"}`;
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      }
    });
    try {
      await expect.poll(() => kinds.get("503 SERVICE_BUSY") ?? 0, { timeout: 60_000 }).toBeGreaterThan(400);
      for (const state of ["downloading", "downloaded", "installing"]) {
        expect((await report(attempt, state)).status).toBe(200);
        expect((await call(service.url, "/v1/devices", { method: "GET" })).status).toBe(200);
      }
      expect(await degraded()).toEqual(["capacity"]);
    } finally {
      crowded = false;
      proxy.resume();
      await Promise.all(crowd);
    }
    console.log(`the crowd was answered: ${JSON.stringify(Object.fromEntries(kinds))}`);
    expect([...kinds.keys()].sort()).toEqual(["200 ok", "503 SERVICE_BUSY"]);
    await expect.poll(degraded, { timeout: 20_000 }).toEqual([]);
    expect((await check(service.url, second())).status).toBe(200);
    expect([count(OVERLOADED), count(OVER)]).toEqual([1, 1]);
  });
});
