import { hash } from "node:crypto";
import { matchesAny } from "../artifacts/send-artifact.ts";
import type { Exchange } from "../http/exchange.ts";
import { HttpProblem } from "../http/problems.ts";
import { type FlatHeaders, sendJson, sendStream } from "../http/send.ts";
import type { ServeOptions } from "../http/serve-route.ts";
import { answeredType } from "./content-types.ts";
import type { DdiCredentialsOf } from "./ddi-credentials.ts";
import { notFound, readDdiPath } from "./ddi-path.ts";
import { answerRefusal } from "./refusals.ts";
import type { DdiAnswer, DdiRoute } from "./route.ts";
import { ddiRoutes } from "./routes.ts";

/** Serves a request whose URL is DDI's. Never rejects: every error becomes an answer. */
export type DdiServer = (exchange: Exchange) => Promise<void>;

/** Makes the server of hawkBit's DDI v1: one more way to the very functions that the native API calls. */
export function ddiServer(options: ServeOptions & { readonly credentialsOf: DdiCredentialsOf }): DdiServer {
  const { services, gate, traceRequest, credentialsOf, bodyTimeoutMs } = options;
  const baseHeaders = options.headers.forDevices;

  return async (exchange) => {
    try {
      const { request } = exchange;
      const { url = "" } = request;
      const { controllerId, segments } = readDdiPath(url);
      const { route, params } = routeOf(request.method ?? "", segments);
      const serve = () => serveRoute(exchange, { route, params, controllerId });
      await (traceRequest === undefined ? serve() : traceRequest(route, exchange, serve));
    } catch (error) {
      answerRefusal(exchange, error, { baseHeaders });
    }
  };

  async function serveRoute(
    exchange: Exchange,
    found: { readonly route: DdiRoute; readonly params: readonly string[]; readonly controllerId: string },
  ): Promise<void> {
    const { route, params, controllerId } = found;
    const { request } = exchange;
    exchange.serving(route);
    try {
      // What a device tells is answered without a body: refused for a type, it would be lost for nothing.
      const type = route.anyType || route.method !== "GET" ? "" : answeredType(request);
      const credentials = credentialsOf(request, controllerId);
      if (credentials === undefined) {
        throw new HttpProblem("CREDENTIALS_MISSING", { detail: "Send a TargetToken or a GatewayToken." });
      }
      let answer: DdiAnswer | undefined;
      try {
        gate?.enter(route, exchange);
        gate?.identified(route, credentials);
      } catch (error) {
        answer = route.whenBusy?.(error);
        if (answer === undefined) throw error;
      }
      const baseUrl = `${services.publicUrlOf(request)}/DEFAULT/controller/v1/${encodeURIComponent(controllerId)}`;
      answer ??= await route.handle({
        ...{ exchange, services, credentials, controllerId, params, baseUrl, bodyTimeoutMs },
      });
      await send(exchange, answer, { type, baseHeaders });
    } catch (error) {
      gate?.failed(error, exchange);
      answerRefusal(exchange, error, { baseHeaders });
    }
  }
}

/** Each route with the parts of its resource, taken apart once. */
const ROUTES = ddiRoutes.map((route) => ({ route, parts: route.resource.split("/").slice(1) }));

function routeOf(method: string, segments: readonly string[]): { route: DdiRoute; params: readonly string[] } {
  const fits = ROUTES.flatMap(({ route, parts }) => {
    const params = paramsOf(parts, segments);
    return params === undefined ? [] : [{ route, params }];
  });
  // A resource by its own name comes before one that takes any name in this place.
  const named = fits.filter(({ params }) => params.length === 0);
  const matches = named.length > 0 ? named : fits;
  if (matches.length === 0) throw notFound("There is no such resource.");
  const found = matches.find(({ route }) => route.method === (method === "HEAD" ? "GET" : method));
  if (found !== undefined) return found;
  const allowed = matches
    .flatMap(({ route }) => (route.method === "GET" ? ["GET", "HEAD"] : [route.method]))
    .join(", ");
  throw new HttpProblem("METHOD_NOT_ALLOWED", {
    detail: `${method} is not known here, only ${allowed}.`,
    headers: { Allow: allowed },
  });
}

function paramsOf(wanted: readonly string[], segments: readonly string[]): readonly string[] | undefined {
  if (wanted.length !== segments.length) return undefined;
  const params: string[] = [];
  for (const [index, part] of wanted.entries()) {
    const segment = segments[index] ?? "";
    if (part.startsWith("{")) params.push(segment);
    else if (part !== segment) return undefined;
  }
  return params;
}

async function send(
  exchange: Exchange,
  answer: DdiAnswer,
  { type, baseHeaders }: { readonly type: string; readonly baseHeaders: FlatHeaders },
): Promise<void> {
  if ("stream" in answer) {
    await sendStream(exchange, { stream: answer.stream, baseHeaders });
    return;
  }
  if (!("body" in answer)) {
    sendJson(exchange, { ...answer, baseHeaders });
    return;
  }
  const { status, body, tagged = body } = answer;
  const etag = `"0${hash("md5", JSON.stringify(tagged))}"`;
  const headers = { ETag: etag };
  if (matchesAny(exchange.request.headers["if-none-match"], etag))
    sendJson(exchange, { status: 304, headers, baseHeaders });
  else sendJson(exchange, { status, body, type, headers, baseHeaders });
}
