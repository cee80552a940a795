import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { hashToken } from "@ota/domain";
import { z } from "zod";
import { requiredBearerToken } from "../http/credentials.ts";
import { HttpProblem } from "../http/problems.ts";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import type { MetricsPage } from "./metrics-page.ts";

/** For Prometheus and whatever reads its format. */
export const metricsRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "GET",
    path: "/metrics",
    operationId: "getMetrics",
    summary: "The figures of this process",
    description:
      "In Prometheus' text format. Each process has its own: behind a balancer, scrape the processes and not the balancer. " +
      "With `OTA_METRICS_TOKEN` set it takes that token as Bearer.",
    tag: "Service",
    auth: "none",
    request: { query: z.looseObject({}) },
    responses: { 200: { description: "The figures", contentType: "text/plain" } },
    problems: ["ROUTE_NOT_FOUND", "CREDENTIALS_MISSING", "METRICS_TOKEN_INVALID"],
    quiet: true,
    async handler({ raw }, { metrics }) {
      if (metrics === undefined) {
        throw new HttpProblem("ROUTE_NOT_FOUND", { detail: "This service shows no figures: OTA_METRICS is off." });
      }
      checkToken(raw, metrics);
      const text = await metrics.text();
      return {
        async stream(response: ServerResponse): Promise<void> {
          response
            .writeHead(200, { "Content-Type": metrics.contentType, "Content-Length": Buffer.byteLength(text) })
            .end(text);
        },
      };
    },
  }),
];

function checkToken(request: IncomingMessage, { tokenHash }: MetricsPage): void {
  if (tokenHash === undefined) return;
  const token = requiredBearerToken(request, "the token of OTA_METRICS_TOKEN");
  if (timingSafeEqual(hashToken(token), tokenHash)) return;
  throw new HttpProblem("METRICS_TOKEN_INVALID", {
    detail: "This is not the token of OTA_METRICS_TOKEN.",
    headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' },
  });
}
