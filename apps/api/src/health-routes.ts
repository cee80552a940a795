import { z } from "zod";
import { HEALTH_PARTS } from "./health.ts";
import { defineRoute, type RouteDefinition } from "./http/route.ts";

const partSchema = z.enum(HEALTH_PARTS);
const readinessSchema = z
  .object({
    status: z.enum(["ready", "unavailable", "ending"]),
    degraded: z.array(partSchema).meta({ description: "Away; the service goes on without them." }),
    unavailable: z.array(partSchema).meta({ description: "Away; the service cannot go on without them." }),
  })
  .meta({ id: "Readiness" });

/** Whatever a prober adds to the URL is its own business. */
const anyQuery = z.looseObject({});

/** For whoever starts, watches and balances the service. */
export const healthRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "GET",
    path: "/healthz",
    operationId: "getHealth",
    summary: "Whether the process is alive",
    description: "Says nothing about the database: a process that waits for it need not be restarted.",
    tag: "Service",
    auth: "none",
    request: { query: anyQuery },
    responses: { 200: { description: "It is", body: z.object({ status: z.literal("alive") }) } },
    problems: [],
    quiet: true,
    async handler() {
      return { status: 200, body: { status: "alive" } };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/readyz",
    operationId: "getReadiness",
    summary: "Whether requests can be served",
    description:
      "`database`: nothing goes without it. `lock-store`: by `OTA_LOCK_OUTAGE` the service goes on without it, or not. " +
      "`artifact-store`: the folder is not there, not writable, or another installation's; checks and reports go on. " +
      "`capacity`: checks are turned away, since the process or its database is late; reports are taken. " +
      "The status `ending`: the service was told to end, and still answers for `OTA_SHUTDOWN_DELAY_MS`.",
    tag: "Service",
    auth: "none",
    request: { query: anyQuery },
    responses: {
      200: { description: "They can, perhaps without some parts", body: readinessSchema },
      503: { description: "They cannot, or only for the moment", body: readinessSchema },
    },
    problems: [],
    quiet: true,
    async handler(_request, { health }) {
      const report = await health.check();
      return { status: report.status === "ready" ? 200 : 503, body: report };
    },
  }),
];
