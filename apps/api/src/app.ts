import express, { type Express, type NextFunction, type Request, type Response } from "express";
import type { Logger } from "pino";
import { artifactRoutes } from "./artifacts/routes.ts";
import { deviceRoutes } from "./device/routes.ts";
import { documentationRoutes } from "./docs-page/routes.ts";
import { healthRoutes } from "./health-routes.ts";
import { Exchange } from "./http/exchange.ts";
import { mountRoutes } from "./http/mount-routes.ts";
import { HttpProblem } from "./http/problems.ts";
import { baseHeaders } from "./http/response-headers.ts";
import { answerError } from "./http/serve-route.ts";
import { operatorRoutes } from "./operator/routes.ts";
import type { Services } from "./services.ts";

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
   * Proxies whose `X-Forwarded-For` is believed, as Express's "trust proxy" takes them.
   * @default none
   */
  readonly trustedProxies?: readonly string[];
}

/** The routes of the service in the order in which they are tried: what devices call comes first. */
export const apiRoutes = [...deviceRoutes, ...artifactRoutes, ...operatorRoutes, ...healthRoutes];

/** The HTTP application. Does no I/O of its own: everything it uses is handed in. */
export function createApp(dependencies: AppDependencies): Express {
  const { services, logger, version, trustedProxies = [] } = dependencies;
  const headers = baseHeaders(services.publicUrl);
  const app = express()
    .disable("x-powered-by")
    .disable("etag")
    .set("query parser", false)
    .enable("case sensitive routing")
    .enable("strict routing")
    .set("trust proxy", trustedProxies);

  const clientAddressOf = trustedProxies.length === 0 ? peerAddress : forwardedAddress;
  const exchangeOf = (request: Request, response: Response): Exchange =>
    (response.locals["exchange"] ??= new Exchange(request, response, { logger, clientAddressOf }));
  const routes = [...apiRoutes, ...documentationRoutes(apiRoutes, { version, publicUrl: services.publicUrl })];
  mountRoutes(app, { routes, exchangeOf, serve: { ...dependencies, headers } });

  app.use((request: Request, response: Response) => {
    const detail = `There is no ${request.path}. The addresses are listed at /docs.`;
    answerError(exchangeOf(request, response), new HttpProblem("ROUTE_NOT_FOUND", { detail }), headers.forBrowsers);
  });
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    answerError(exchangeOf(request, response), error, headers.forBrowsers);
  });
  return app;
}

function peerAddress(request: {
  readonly socket: { readonly remoteAddress?: string | undefined };
}): string | undefined {
  return request.socket.remoteAddress;
}

function forwardedAddress(request: object): string | undefined {
  return (request as Request).ip;
}
