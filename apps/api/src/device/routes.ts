import type { RouteDefinition } from "../http/route.ts";
import { attributesRoute } from "./attributes.ts";
import { checkRoute } from "./check.ts";
import { reportRoute } from "./reports.ts";

/** What devices call, the most frequent first. */
export const deviceRoutes: readonly RouteDefinition[] = [checkRoute, reportRoute, attributesRoute];
