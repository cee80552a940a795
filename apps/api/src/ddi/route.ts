import type { ServerResponse } from "node:http";
import type { DeviceCredentials } from "@ota/domain";
import type { Exchange } from "../http/exchange.ts";
import type { ServedRoute } from "../http/route.ts";
import type { Services } from "../services.ts";

/** One resource of hawkBit's DDI v1 with one method. A `GET` answers `HEAD` as well. */
export interface DdiRoute extends ServedRoute {
  readonly method: "GET" | "PUT" | "POST";
  /** Below `/{tenant}/controller/v1/{controllerId}`. */
  readonly resource: string;
  /** Whether a `GET` is answered whatever `Accept` says, since it answers no JSON. @default false */
  readonly anyType?: boolean;
  readonly handle: DdiHandler;
  /** What is answered to a request that is turned away for load; `undefined`: it is refused. @default refused */
  readonly whenBusy?: (refusal: unknown) => DdiAnswer | undefined;
}

export type DdiHandler = (request: DdiRequest) => Promise<DdiAnswer>;

/** What a handler is given. Whose credentials they are is not known before the domain has seen them. */
export interface DdiRequest {
  readonly exchange: Exchange;
  readonly services: Services;
  readonly credentials: DeviceCredentials;
  readonly controllerId: string;
  /** What stands for the placeholders of the resource, in their order. */
  readonly params: readonly string[];
  /** The absolute URL of the device's base resource: what links begin with. */
  readonly baseUrl: string;
  readonly bodyTimeoutMs: number;
}

/** What a handler answers. Refusals are thrown. */
export type DdiAnswer =
  | { readonly status: 200 }
  | {
      readonly status: 200;
      readonly body: object;
      /** What the ETag is made of, where that is not the whole body. */
      readonly tagged?: object;
    }
  | { readonly stream: (response: ServerResponse) => Promise<void> };

const BASE = "/{tenant}/controller/v1/{controllerId}";

/** Declares a route. */
export function ddiRoute(
  method: DdiRoute["method"],
  resource: string,
  { handle, ...rest }: Pick<DdiRoute, "handle" | "anyType" | "refusable" | "whenBusy">,
): DdiRoute {
  return { method, resource, path: `${BASE}${resource}`, auth: "device", ...rest, handle };
}
