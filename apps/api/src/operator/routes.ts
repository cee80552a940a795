import type { RouteDefinition } from "../http/route.ts";
import { auditRoutes } from "./audit.ts";
import { deviceRoutes } from "./devices.ts";
import { explainRoute } from "./explain.ts";
import { figureRoutes } from "./figures.ts";
import { firmwareRoutes } from "./firmware.ts";
import { gatewayTokenRoutes } from "./gateway-tokens.ts";
import { operatorKeyRoutes } from "./operator-keys.ts";
import { productRoutes } from "./products.ts";
import { rolloutRoutes } from "./rollouts.ts";
import { signingKeyRoutes } from "./signing-key.ts";
import { upgradeRoutes } from "./upgrades.ts";

/** All routes of operators, in the order of the reference. */
export const operatorRoutes: readonly RouteDefinition[] = [
  ...productRoutes,
  ...signingKeyRoutes,
  ...firmwareRoutes,
  ...rolloutRoutes,
  ...deviceRoutes,
  ...gatewayTokenRoutes,
  explainRoute,
  ...upgradeRoutes,
  ...operatorKeyRoutes,
  ...figureRoutes,
  ...auditRoutes,
];
