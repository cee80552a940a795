import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import type { Logger } from "pino";
import { artifactRoutes } from "./artifacts/routes.ts";
import type { DdiAuthorities } from "./ddi/ddi-authorities.ts";
import { ddiCredentials } from "./ddi/ddi-credentials.ts";
import { isDdiUrl } from "./ddi/ddi-path.ts";
import { ddiServer } from "./ddi/serve-ddi.ts";
import { checkRoute } from "./device/check.ts";
import { deviceRoutes } from "./device/routes.ts";
import { documentationRoutes } from "./docs-page/routes.ts";
import { healthRoutes } from "./health-routes.ts";
import { clientAddresses } from "./http/client-address.ts";
import { Exchange, type RequestObserver } from "./http/exchange.ts";
import { mountRoutes } from "./http/mount-routes.ts";
import { HttpProblem } from "./http/problems.ts";
import { baseHeaders } from "./http/response-headers.ts";
import { answerError, routeServer, type ServeOptions } from "./http/serve-route.ts";
import type { Gate } from "./limits/gate.ts";
import { metricsRoutes } from "./metrics/routes.ts";
import { operatorRoutes } from "./operator/routes.ts";
import type { Services } from "./services.ts";
import type { RequestTracer } from "./tracing/request-spans.ts";

/** What the application is made of. */
export interface AppDependencies {
  readonly services: Services;
  readonly logger: Logger;
  /** Of the service, for the reference. */
  readonly version: string;
  /** The largest JSON body that is read. */
  readonly bodyLimitBytes: number;
  /** How long a JSON body may take to arrive. */
  readonly bodyTimeoutMs: number;
  /**
   * Whether browsers are told to come by TLS alone.
   * @default false
   */
  readonly sendsOnlyByTls?: boolean;
  /**
   * Proxies whose `X-Forwarded-For` is believed: addresses, subnets, names of ranges.
   * @default none
   */
  readonly trustedProxies?: readonly string[];
  /**
   * Whom these proxies vouch for, on the DDI routes.
   * @default nobody
   */
  readonly ddiAuthorities?: DdiAuthorities;
  /**
   * Is told of every request when it is over.
   * @default nobody
   */
  readonly observeRequest?: RequestObserver | undefined;
  /**
   * Refuses requests for load, or for coming too often.
   * @default everything is let through
   */
  readonly gate?: Gate | undefined;
  /**
   * Serves each request within a span.
   * @default requests are not traced
   */
  readonly traceRequest?: RequestTracer | undefined;
}

/** The routes of the service, but for those that describe them. */
export const apiRoutes = [...deviceRoutes, ...artifactRoutes, ...operatorRoutes, ...healthRoutes, ...metricsRoutes];

/** The HTTP application. Does no I/O of its own: everything it uses is handed in. */
export function createApp(dependencies: AppDependencies): Express {
  const { version } = dependencies;
  const serve = serveOptions(dependencies);
  const exchangeOf = exchanges(dependencies);
  const app = expressWithoutExtras();
  app.use((request: Request, response: Response, next: NextFunction) => {
    response.locals["exchange"] = exchangeOf(request, response);
    next();
  });
  const routes = [...apiRoutes, ...documentationRoutes(apiRoutes, { version })];
  mountRoutes(app, { routes, serve });
  mountRefusals(app, serve);
  return app;
}

/**
 * The application as it is served: the check, which is nearly all that a fleet sends, is answered in front of Express,
 * which alone costs more than the rest of a check's HTTP. Both ways lead through the same code. So is hawkBit's DDI, whose
 * addresses and answers are another protocol's.
 */
export function createListener(dependencies: AppDependencies): RequestListener {
  const app = createApp(dependencies);
  const exchangeOf = exchanges(dependencies);
  const serve = serveOptions(dependencies);
  const serveCheck = routeServer(checkRoute, serve);
  const { ddiAuthorities: authorities = new Map(), trustedProxies = [] } = dependencies;
  const serveDdi = ddiServer({ ...serve, credentialsOf: ddiCredentials({ authorities, trustedProxies }) });
  return (request, response) => {
    if (isDdiUrl(request.url ?? "")) void serveDdi(exchangeOf(request, response));
    else if (request.url !== checkRoute.path || request.method !== checkRoute.method) app(request, response);
    else void serveCheck(exchangeOf(request, response), {});
  };
}

function serveOptions(dependencies: AppDependencies): ServeOptions {
  return { ...dependencies, headers: baseHeaders(dependencies) };
}

function exchanges({ logger, trustedProxies = [], observeRequest: observe }: AppDependencies) {
  const clientAddressOf = clientAddresses(trustedProxies);
  return (request: IncomingMessage, response: ServerResponse) =>
    new Exchange(request, response, { logger, clientAddressOf, observe });
}

/** Express as a router and nothing else. */
function expressWithoutExtras(): Express {
  return express()
    .disable("x-powered-by")
    .disable("etag")
    .set("query parser", false)
    .enable("case sensitive routing")
    .enable("strict routing");
}

/** What no route takes, and what Express itself refuses. */
function mountRefusals(app: Express, { headers }: ServeOptions): void {
  app.use((request: Request, response: Response) => {
    const detail = `There is no ${request.path}. The addresses are listed at /docs.`;
    answerError(response.locals["exchange"], new HttpProblem("ROUTE_NOT_FOUND", { detail }), headers.forBrowsers);
  });
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    answerError(response.locals["exchange"], error, headers.forBrowsers);
  });
}
