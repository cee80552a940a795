import type { Express, Request, Response } from "express";
import { HttpProblem } from "./problems.ts";
import type { RouteDefinition } from "./route.ts";
import { answerError, routeServer, type ServeOptions } from "./serve-route.ts";

/** What {@link mountRoutes} mounts. */
export interface MountOptions {
  readonly routes: readonly RouteDefinition[];
  readonly serve: ServeOptions;
}

/**
 * Mounts the routes in their order, and behind them, for each of their paths, the answer to every other method. Each
 * response carries its exchange as `locals.exchange`.
 */
export function mountRoutes(app: Express, { routes, serve }: MountOptions): void {
  const methods = new Map<string, string[]>();
  for (const route of routes) {
    const serveRoute = routeServer(route, serve);
    const path = expressPath(route.path);
    app[METHODS[route.method]](path, (request: Request, response: Response) =>
      serveRoute(response.locals["exchange"], request.params),
    );
    methods.set(path, [...(methods.get(path) ?? []), ...(route.method === "GET" ? ["GET", "HEAD"] : [route.method])]);
  }
  for (const [path, allowed] of methods) {
    app.all(path, (request: Request, response: Response) => {
      const problem = new HttpProblem("METHOD_NOT_ALLOWED", {
        detail: `${request.method} is not known here, only ${allowed.join(", ")}.`,
        headers: { Allow: allowed.join(", ") },
      });
      answerError(response.locals["exchange"], problem, serve.headers.forBrowsers);
    });
  }
}

const METHODS = { GET: "get", POST: "post", PUT: "put", PATCH: "patch", DELETE: "delete" } as const;

/** `/v1/attempts/{attemptId}/reports` as Express writes it: `/v1/attempts/:attemptId/reports`. */
function expressPath(template: string): string {
  return template.replaceAll(/\{(\w+)\}/g, ":$1");
}
