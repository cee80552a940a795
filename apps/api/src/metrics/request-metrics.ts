import { Counter, Histogram, type Registry } from "prom-client";
import type { RequestObserver } from "../http/exchange.ts";

/** From a check that finds its answer in memory to an artifact over a slow line. */
const DURATION_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

/** Counts requests and problems. A request that no route takes has the route `none`. */
export function requestMetrics(registry: Registry): RequestObserver {
  const durations = new Histogram({
    name: "ota_http_request_duration_seconds",
    help: "Requests by route and status, and how long they took; the status none: the client left before its answer",
    labelNames: ["method", "route", "status"],
    buckets: DURATION_SECONDS,
    registers: [registry],
  });
  const problems = new Counter({
    name: "ota_problems_total",
    help: "Requests that were answered with a problem, by its code",
    labelNames: ["code"],
    registers: [registry],
  });
  return ({ route, status, durationMs, problem }) => {
    const { method, path } = route ?? NO_ROUTE;
    durations.observe({ method, route: path, status: status ?? "none" }, durationMs / 1000);
    if (problem !== undefined) problems.inc({ code: problem });
  };
}

/** Neither the path nor the method: both are whatever a client has made up. */
const NO_ROUTE = { method: "none", path: "none" } as const;
