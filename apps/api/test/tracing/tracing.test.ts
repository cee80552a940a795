import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, seedFleet } from "../service/operator-client.ts";
import { type ListeningService, startServiceProcess, TEST_OPERATOR_KEY } from "../service/service-process.ts";
import { startTraceCollector, type TraceCollector } from "../support/trace-collector.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

describe.skipIf(!hasPostgres)("traces", { timeout: 120_000 }, () => {
  let collector: TraceCollector;
  beforeAll(async () => {
    collector = await startTraceCollector();
  });
  afterAll(() => collector[Symbol.asyncDispose]());

  async function start(env: Readonly<Record<string, string>>): Promise<ListeningService> {
    return startServiceProcess({
      env: { DATABASE_URL: await createTestDatabase(), OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env },
    });
  }

  /** A first check, within the trace of its sender. */
  async function tracedCheck({ url }: ListeningService, token: string) {
    const response = await fetch(`${url}/v1/check`, {
      method: "POST",
      headers: {
        ...{ authorization: `Bearer ${token}`, "content-type": "application/json" },
        traceparent: `00-${TRACE}-${PARENT}-01`,
      },
      body: '{"version":"1.0.0"}',
    });
    expect(response.status).toBe(200);
    return (await response.json()) as { device: { id: string } };
  }

  test("on: a check is one trace of its request, its decision, its lock and its statements, and holds no secret", async () => {
    const service = await start({ OTA_TRACING: "on", OTEL_SERVICE_NAME: "the-fleet" });
    let token = "";
    let answer: { device: { id: string } };
    try {
      [token = ""] = (await seedFleet(service.url, { devices: 1 })).tokens;
      answer = await tracedCheck(service, token);
      await call(service.url, "/v1/attempts/1/reports", { token, json: { state: "downloading" } });
      await call(service.url, "/v1/check", { token: "x".repeat(43), json: {} });
      // What is left is sent at the end.
      service.kill("SIGTERM");
      expect(await service.exited).toBe(0);
    } finally {
      await service.dispose();
    }
    const spans = collector.spans.filter(({ traceId }) => traceId === TRACE);
    const named = (name: string) => {
      const found = spans.filter((span) => span.name === name);
      expect(found, name).toHaveLength(1);
      return found[0] ?? expect.fail(name);
    };
    const request = named("POST /v1/check");
    expect(request).toMatchObject({ parentSpanId: PARENT, failed: false });
    expect(request.attributes).toMatchObject({ "http.route": "/v1/check", "http.response.status_code": 200 });
    const check = named("check for update");
    expect(check.parentSpanId).toBe(request.spanId);
    expect(check.attributes).toMatchObject({
      ...{ "ota.decision": "update", "ota.reason": "created", "ota.device": answer.device.id },
    });
    expect(named("lock wait").attributes).toMatchObject({ "ota.lock.store": "memory", "ota.lock.outcome": "acquired" });
    expect(named("lock held").parentSpanId).toBe(check.spanId);
    expect(named("BEGIN").parentSpanId).toBe(check.spanId);
    const statements = spans.filter(({ attributes }) => "db.query.text" in attributes);
    expect(statements.length).toBeGreaterThan(3);
    for (const { parentSpanId, durationMs } of statements) {
      expect(parentSpanId).toBe(check.spanId);
      expect(durationMs).toBeLessThanOrEqual(check.durationMs);
    }
    expect(collector.spans.find(({ name }) => name === "record report")?.attributes).toMatchObject({
      "ota.state": "downloading",
    });
    const refused = collector.spans.find(({ name, failed }) => name === "check for update" && failed);
    expect(refused, "the check with a wrong token").toBeDefined();

    const sent = collector.bodies.join("\n");
    expect(sent).toContain('"the-fleet"');
    for (const secret of [token, TEST_OPERATOR_KEY, "x".repeat(43)]) expect(sent).not.toContain(secret);
    // The request's line in the log names its trace.
    expect(service.log()).toContain(`"traceId":"${TRACE}"`);
    expect(service.errors()).toBe("");
  });

  test("a sender that does not want its request traced gets its way", async () => {
    const before = collector.spans.length;
    const service = await start({ OTA_TRACING: "on", OTA_TRACING_PERCENT: "0" });
    try {
      const [token = ""] = (await seedFleet(service.url, { devices: 1 })).tokens;
      await call(service.url, "/v1/check", { token, json: {} });
      await tracedCheck(service, token);
      service.kill("SIGTERM");
      expect(await service.exited).toBe(0);
    } finally {
      await service.dispose();
    }
    const names = collector.spans.slice(before).map(({ traceId }) => traceId);
    expect(new Set(names)).toEqual(new Set([TRACE]));
  });

  test("off: nothing is sent, and nothing of the SDK is loaded", async () => {
    const before = collector.bodies.length;
    const preload = `
      import { registerHooks } from "node:module";
      registerHooks({ load(url, context, next) {
        if (url.includes("@opentelemetry") && !url.includes("@opentelemetry+api@")) process.stderr.write(url + "\\n");
        return next(url, context);
      } });`;
    const service = await startServiceProcess({
      env: { DATABASE_URL: await createTestDatabase(), OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
      preload,
    });
    try {
      const [token = ""] = (await seedFleet(service.url, { devices: 1 })).tokens;
      await tracedCheck(service, token);
      service.kill("SIGTERM");
      expect(await service.exited).toBe(0);
    } finally {
      await service.dispose();
    }
    expect(service.errors()).toBe("");
    expect(collector.bodies.length).toBe(before);
  });

  test("a collector that is away costs no request and no clean end, and is a warning in the log", async () => {
    const service = await start({ OTA_TRACING: "on", OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
    try {
      const [token = ""] = (await seedFleet(service.url, { devices: 1 })).tokens;
      await tracedCheck(service, token);
      service.kill("SIGTERM");
      expect(await service.exited).toBe(0);
    } finally {
      await service.dispose();
    }
    expect(service.log()).toContain("the last traces could not be sent");
  });
});
