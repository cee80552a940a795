import { authenticateOperator, type DeviceCredentials } from "@ota/domain";
import type { Gate } from "../limits/gate.ts";
import type { Services } from "../services.ts";
import type { RequestTracer } from "../tracing/request-spans.ts";
import { deviceCredentials, requiredBearerToken, requiredDeviceCredentials } from "./credentials.ts";
import type { Exchange } from "./exchange.ts";
import { checkEncoding, readJsonBody } from "./json-body.ts";
import { problemOf } from "./problem-of.ts";
import { HttpProblem } from "./problems.ts";
import { queryOf } from "./query.ts";
import { type BaseHeaders, baseHeadersOf } from "./response-headers.ts";
import type { RouteAuth, RouteDefinition, RouteInput, RouteRequest, RouteResult, StreamBody } from "./route.ts";
import { type FlatHeaders, sendJson, sendProblem, sendStream } from "./send.ts";
import { type InputSchemas, validateInput } from "./validate.ts";

/** What all routes are served with. */
export interface ServeOptions {
  readonly services: Services;
  readonly headers: BaseHeaders;
  readonly bodyLimitBytes: number;
  readonly bodyTimeoutMs: number;
  /** @default everything is let through */
  readonly gate?: Gate | undefined;
  /** @default requests are not traced */
  readonly traceRequest?: RequestTracer | undefined;
}

/** Serves one request of a route, from its credentials to its answer. Never rejects: every error becomes an answer. */
export type RouteServer = (exchange: Exchange, params: Readonly<Record<string, unknown>>) => Promise<void>;

/** Makes the server of one route. The order of refusals is: limits, credentials, body, fields, and what the handler refuses. */
export function routeServer(route: RouteDefinition, options: ServeOptions): RouteServer {
  const headers = baseHeadersOf(route, options.headers);
  const schemas = schemasOf(route.request);
  const { gate, traceRequest } = options;
  return traceRequest === undefined
    ? serve
    : (exchange, params) => traceRequest(route, exchange, () => serve(exchange, params));

  async function serve(exchange: Exchange, params: Readonly<Record<string, unknown>>): Promise<void> {
    exchange.serving(route);
    try {
      gate?.enter(route, exchange);
      const caller = await authenticate(route.auth, exchange, options.services);
      gate?.identified(route, caller.credentials);
      const body = await readBody(route.request, exchange, options);
      const input = validateInput(schemas, { params, query: queryOf(exchange.request.url), body });
      const request = requestOf(exchange, { ...input, ...caller });
      await answer(exchange, await route.handler(request, options.services), headers);
    } catch (error) {
      gate?.failed(error, exchange);
      answerError(exchange, error, headers);
    }
  }
}

/** Answers an error as a problem. */
export function answerError(exchange: Exchange, error: unknown, headers: FlatHeaders): void {
  const problem = problemToAnswer(exchange, error);
  if (problem !== undefined) sendProblem(exchange, problem, headers);
}

/**
 * The problem that an error is, noted for the log. `undefined`: it can't be answered after the first byte, so the
 * connection is cut, which the client sees.
 */
export function problemToAnswer(exchange: Exchange, error: unknown): HttpProblem | undefined {
  const problem = problemOf(error);
  exchange.failing(problem);
  if (problem.code === "INTERNAL_ERROR") exchange.log.error({ err: error }, "a request failed unexpectedly");
  const { response } = exchange;
  if (!response.headersSent) return problem;
  response.destroy();
  return undefined;
}

type Caller = Partial<Pick<RouteRequest<RouteInput, "operator">, "actor">> & {
  readonly credentials?: DeviceCredentials | undefined;
};

async function authenticate(auth: RouteAuth, { request }: Exchange, { db }: Services): Promise<Caller> {
  switch (auth) {
    case "none":
      return {};
    case "device":
      return { credentials: requiredDeviceCredentials(request) };
    case "device-or-signature":
      return { credentials: deviceCredentials(request) };
    case "operator":
      return { actor: await authenticateOperator(db, { key: requiredBearerToken(request, "an operator key") }) };
  }
}

function schemasOf({ params, query, body }: RouteInput): InputSchemas {
  return {
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { query }),
    ...(body?.kind === "json" ? { body: body.schema } : {}),
  };
}

async function readBody({ body }: RouteInput, { request }: Exchange, options: ServeOptions): Promise<unknown> {
  if (body === undefined) return undefined;
  if (body.kind === "stream") {
    checkStreamType(request.headers["content-type"], body);
    checkEncoding(request);
    return undefined;
  }
  const { bodyLimitBytes, bodyTimeoutMs } = options;
  const read = await readJsonBody(request, { maxBytes: body.maxBytes ?? bodyLimitBytes, timeoutMs: bodyTimeoutMs });
  if (read !== undefined) return read;
  if (body.optional) return {};
  throw new HttpProblem("JSON_INVALID", { detail: "A JSON body is required here, and there is none." });
}

function checkStreamType(type: string | undefined, { contentTypes: accepted, typeRequired }: StreamBody): void {
  if (type === undefined && !typeRequired) return;
  if (type !== undefined && accepted.includes((type.split(";", 1)[0] ?? "").trim().toLowerCase())) return;
  const orNone = typeRequired ? "" : ", or with none";
  throw new HttpProblem("MEDIA_TYPE_UNSUPPORTED", {
    detail: `Send the file as it is, with Content-Type: ${accepted.join(" or ")}${orNone}.`,
    headers: { Accept: accepted.join(", ") },
  });
}

function requestOf(exchange: Exchange, rest: object): RouteRequest<RouteInput, RouteAuth> {
  return {
    ...rest,
    raw: exchange.request,
    note: (facts: Readonly<Record<string, unknown>>) => exchange.note(facts),
    get log() {
      return exchange.log;
    },
  } as RouteRequest<RouteInput, RouteAuth>;
}

async function answer(exchange: Exchange, result: RouteResult, baseHeaders: FlatHeaders): Promise<void> {
  if ("stream" in result) await sendStream(exchange, { stream: result.stream, baseHeaders });
  else sendJson(exchange, { ...result, baseHeaders });
}
