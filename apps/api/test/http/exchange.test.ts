import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { type AppDependencies, createListener } from "../../src/app.ts";
import { createHttpServer } from "../../src/http/server.ts";
import { createLogger } from "../../src/logging.ts";
import type { Services } from "../../src/services.ts";
import { sendRaw } from "../support/raw-http.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** The application on nothing: enough for what needs no database. */
async function listening(options: Partial<AppDependencies> & { readonly fails?: Error } = {}) {
  const lines: string[] = [];
  const { fails, ...dependencies } = options;
  const services: Pick<Services, "health" | "publicUrlOf"> = {
    publicUrlOf: () => "http://127.0.0.1",
    health: {
      async check() {
        if (fails !== undefined) throw fails;
        return { status: "ready", degraded: [], unavailable: [] };
      },
    },
  };
  const app = createListener({
    services: services as Services,
    logger: createLogger({ level: "debug", destination: { write: (line: string) => void lines.push(line) } }),
    version: "1.2.3",
    bodyLimitBytes: 1024,
    bodyTimeoutMs: 100,
    ...dependencies,
  });
  const server = createHttpServer(app, { keepAliveMs: 1000, uploadTimeoutMs: 0 }).listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    send: (head: string, body = "") =>
      sendRaw(url, Buffer.from(`${head.replaceAll("\n", "\r\n")}\r\nHost: x\r\n\r\n${body}`)),
    /** The log's lines once there are so many. */
    async logged(count: number): Promise<Record<string, unknown>[]> {
      await expect.poll(() => lines.length).toBe(count);
      return lines.map((line) => JSON.parse(line));
    },
  };
}

describe("an exchange", () => {
  test("a sane X-Request-Id is kept and logged, any other is replaced", async () => {
    const { send, logged } = await listening();
    const id = "4bf92f35-77b3:4da6_a3ce.929d";
    expect((await send(`GET /none HTTP/1.1\nX-Request-Id: ${id}`)).headers["x-request-id"]).toBe(id);
    expect(await logged(1)).toMatchObject([{ requestId: id, status: 404, code: "ROUTE_NOT_FOUND", level: "info" }]);
    for (const bad of ["a b", "x".repeat(101), '"', "a, b", ""]) {
      const { headers } = await send(`GET /none HTTP/1.1\nX-Request-Id: ${bad}`);
      expect(headers["x-request-id"]).toMatch(/^[\w-]{12}-[0-9a-z]+$/);
    }
    const { headers } = await send("GET /none HTTP/1.1\nX-Request-Id: a\nX-Request-Id: b");
    expect(headers["x-request-id"]).toMatch(/^[\w-]{12}-[0-9a-z]+$/);
  });

  test("the line of a request holds its path and not its query, which may let its bearer in", async () => {
    const { send, logged } = await listening();
    await send("GET /v1/firmware/x/artifact?expires=1&signature=hunter2 HTTP/1.1");
    const [line] = await logged(1);
    expect(line).toMatchObject({ method: "GET", path: "/v1/firmware/x/artifact", durationMs: expect.any(Number) });
    expect(JSON.stringify(line)).not.toContain("hunter2");
  });

  test("an unexpected error is answered 500 with the request's id and nothing of its inside, which the log has", async () => {
    const { send, logged } = await listening({ fails: new Error("password hunter2 refused at db.internal") });
    const answer = await send("GET /readyz HTTP/1.1\nX-Request-Id: abc");
    expect(answer).toMatchObject({ status: 500, body: { code: "INTERNAL_ERROR", requestId: "abc" } });
    expect(answer.text).not.toMatch(/hunter2|internal\b.*at |readyz|\.ts/);
    const [error, request] = await logged(2);
    expect(error).toMatchObject({
      level: "error",
      requestId: "abc",
      err: { stack: expect.stringContaining("hunter2") },
    });
    expect(request).toMatchObject({ level: "debug", requestId: "abc", status: 500, code: "INTERNAL_ERROR" });
  });

  test("a body that does not arrive in time is answered 408, and the connection is closed", async () => {
    const { send } = await listening();
    const answer = await send(
      "POST /v1/check HTTP/1.1\nAuthorization: Bearer x\nContent-Type: application/json\nContent-Length: 50",
      "{",
    );
    expect(answer).toMatchObject({ status: 408, body: { code: "REQUEST_TIMEOUT" }, headers: { connection: "close" } });
  });

  test("X-Forwarded-For is believed of a trusted proxy alone", async () => {
    const head = "GET /none HTTP/1.1\nX-Forwarded-For: 203.0.113.7";
    const plain = await listening();
    await plain.send(head);
    expect(await plain.logged(1)).toMatchObject([{ client: "127.0.0.1" }]);
    const proxied = await listening({ trustedProxies: ["loopback"] });
    await proxied.send(head);
    expect(await proxied.logged(1)).toMatchObject([{ client: "203.0.113.7" }]);
    const other = await listening({ trustedProxies: ["10.0.0.0/8"] });
    await other.send(head);
    expect(await other.logged(1)).toMatchObject([{ client: "127.0.0.1" }]);
  });

  test("answers say that they are no pages, and not what made them; TLS is asked for where the service has it", async () => {
    const { send } = await listening();
    const { headers } = await send("GET /healthz HTTP/1.1");
    expect(headers).toMatchObject({
      "cache-control": "no-store",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
    expect(Object.keys(headers)).not.toEqual(
      expect.arrayContaining(["x-powered-by", "etag", "strict-transport-security"]),
    );
    const check = await send("POST /v1/check HTTP/1.1\nContent-Length: 0");
    expect(Object.keys(check.headers)).toEqual(expect.arrayContaining(["cache-control", "x-content-type-options"]));
  });

  test("HEAD is answered like GET, without a body", async () => {
    const { send } = await listening();
    const [head, get] = [await send("HEAD /healthz HTTP/1.1\nConnection: close"), await send("GET /healthz HTTP/1.1")];
    expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: "" });
  });
});
