import { hasPostgres, hasRedis, type PostgresServer, type RedisServer, startPostgres, startRedis } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, check, seedFleet } from "./operator-client.ts";
import { type ListeningService, startServiceProcess, TEST_OPERATOR_KEY, TEST_SIGNING_KEY } from "./service-process.ts";

const get = (url: string, path: string) => call(url, path, { method: "GET" });

/** Attempts a number of times at once and tells the answers by status and code. */
async function storm(times: number, ask: () => Promise<{ status: number; body: { code?: string } }>) {
  const answers = await Promise.all(Array.from({ length: times }, ask));
  return [...new Set(answers.map(({ status, body }) => `${status} ${body.code ?? "ok"}`))].sort();
}

describe.skipIf(!(hasPostgres && hasRedis))("the service while a part is away", { timeout: 120_000 }, () => {
  let postgres: PostgresServer;
  let redis: RedisServer;
  let proceeding: ListeningService;
  let busy: ListeningService;
  let tokens: readonly string[];

  beforeAll(async () => {
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    const env = {
      DATABASE_URL: await postgres.createDatabase(),
      REDIS_URL: redis.url,
      OTA_DATABASE_STATEMENT_TIMEOUT_MS: "2000",
      LOG_LEVEL: "debug",
    };
    [proceeding, busy] = await Promise.all([
      startServiceProcess({ env }),
      startServiceProcess({ env: { ...env, OTA_LOCK_OUTAGE: "busy" } }),
    ]);
    ({ tokens } = await seedFleet(proceeding.url, { devices: 100 }));
  }, 180_000);
  afterAll(async () => {
    await Promise.all([proceeding, busy].map((service) => service.dispose()));
    await Promise.all([postgres.stop(), redis.stop()]);
  });

  // Each test takes devices that no other has asked for: only a first check needs the lock.
  let next = 0;
  const freshDevice = (): string => {
    const token = tokens[next++];
    if (token === undefined) throw new Error("no device is left");
    return token;
  };

  test("all parts there: ready, and nothing degraded", async () => {
    for (const { url } of [proceeding, busy]) {
      expect(await get(url, "/readyz")).toMatchObject({
        status: 200,
        body: { status: "ready", degraded: [], unavailable: [] },
      });
    }
  });

  test("Redis killed: one goes on and says degraded, the other answers SERVICE_BUSY with Retry-After and is not ready", async () => {
    await redis.kill();
    try {
      expect(await storm(3, () => check(proceeding.url, freshDevice()))).toEqual(["200 ok"]);
      const refused = await check(busy.url, freshDevice());
      expect(refused).toMatchObject({ status: 503, body: { code: "SERVICE_BUSY" } });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      await expect
        .poll(() => get(proceeding.url, "/readyz"))
        .toMatchObject({
          status: 200,
          body: { degraded: ["lock-store"] },
        });
      await expect
        .poll(() => get(busy.url, "/readyz"))
        .toMatchObject({
          status: 503,
          body: { unavailable: ["lock-store"] },
        });
    } finally {
      await redis.restart();
    }
    for (const { url } of [proceeding, busy]) {
      await expect
        .poll(() => get(url, "/readyz"), { timeout: 10_000 })
        .toMatchObject({ body: { degraded: [], unavailable: [] } });
      await expect.poll(async () => (await check(url, freshDevice())).status, { timeout: 5000 }).toBe(200);
    }
  });

  test("Redis hung: the same, and a check waits no longer than one operation of the lock store", async () => {
    redis.pause();
    try {
      const startedAt = performance.now();
      expect((await check(proceeding.url, freshDevice())).status).toBe(200);
      expect(performance.now() - startedAt).toBeLessThan(1500);
      expect((await check(busy.url, freshDevice())).body.code).toBe("SERVICE_BUSY");
    } finally {
      redis.resume();
    }
    await expect.poll(async () => (await check(busy.url, freshDevice())).status, { timeout: 10_000 }).toBe(200);
  });

  test("a known device is answered without the lock store, also where its outage means busy", async () => {
    const token = freshDevice();
    expect((await check(busy.url, token)).status).toBe(200);
    await redis.kill();
    try {
      expect((await check(busy.url, token)).status).toBe(200);
    } finally {
      await redis.restart();
    }
  });

  test("PostgreSQL killed: 503 with Retry-After and a code, alive but not ready; it recovers by itself", async () => {
    await postgres.kill();
    try {
      const token = freshDevice();
      expect(await storm(20, () => check(proceeding.url, token))).toEqual(["503 DATABASE_UNAVAILABLE"]);
      const refused = await get(proceeding.url, "/v1/devices");
      expect(refused).toMatchObject({ status: 503, body: { code: "DATABASE_UNAVAILABLE" } });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect((await get(proceeding.url, "/healthz")).status).toBe(200);
      await expect
        .poll(() => get(proceeding.url, "/readyz"))
        .toMatchObject({
          status: 503,
          body: { unavailable: ["database"] },
        });
    } finally {
      await postgres.restart();
    }
    await expect.poll(async () => (await check(proceeding.url, freshDevice())).status, { timeout: 10_000 }).toBe(200);
    await expect.poll(async () => (await get(proceeding.url, "/readyz")).status, { timeout: 5000 }).toBe(200);
  });

  test("PostgreSQL hung: requests end in time as 503, and it recovers by itself", async () => {
    postgres.pause();
    const startedAt = performance.now();
    try {
      const kinds = await storm(20, () => check(proceeding.url, freshDevice()));
      for (const kind of kinds) expect(kind).toMatch(/^503 (DATABASE_UNAVAILABLE|SERVICE_BUSY)$/);
      expect(performance.now() - startedAt).toBeLessThan(10_000);
    } finally {
      postgres.resume();
    }
    await expect.poll(async () => (await get(proceeding.url, "/readyz")).status, { timeout: 10_000 }).toBe(200);
  });

  test("after all of this no request was answered 500, and the log holds no secret", () => {
    for (const { log, errors } of [proceeding, busy]) {
      expect(log()).not.toContain('"status":500');
      expect(errors()).toBe("");
      for (const secret of [...tokens, TEST_OPERATOR_KEY, TEST_SIGNING_KEY, "signature="]) {
        expect(log().includes(secret), "a secret is in the log").toBe(false);
      }
    }
  });
});
