import type { IncomingMessage, ServerResponse } from "node:http";
import type { Actor, DeviceCredentials } from "@ota/domain";
import type { Logger } from "pino";
import type { z } from "zod";
import type { Services } from "../services.ts";
import type { ProblemCode } from "./problems.ts";

/** The methods of the API. A `GET` route answers `HEAD` as well. */
export type RouteMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * Who may call a route, and what its handler is told about the caller.
 *
 * - `none`: everybody.
 * - `device`: a device token as Bearer, or a gateway's with the device's serial in {@link SERIAL_HEADER}. The handler gets
 *   the token's hash and the serial; the domain says whether they are a device's.
 * - `device-or-signature`: the same, but the token may be absent: then the handler checks the URL's signature.
 * - `operator`: an operator key as Bearer, already checked.
 */
export type RouteAuth = keyof CallerByAuth;

interface CallerByAuth {
  none: Record<never, never>;
  device: { readonly credentials: DeviceCredentials };
  "device-or-signature": { readonly credentials: DeviceCredentials | undefined };
  operator: { readonly actor: Actor };
}

/** A body that is JSON, read whole and validated. */
export interface JsonBody<Schema extends z.ZodType = z.ZodType> {
  readonly kind: "json";
  readonly schema: Schema;
  /** @default the service's `BODY_LIMIT_BYTES` */
  readonly maxBytes?: number;
  /** Whether a request without a body counts as `{}`. @default false */
  readonly optional?: boolean;
  /** One line for the reference. */
  readonly description?: string;
}

/** A body that the handler reads as a stream from {@link RouteRequest.raw}, checking its length by itself. */
export interface StreamBody {
  readonly kind: "stream";
  /** Accepted media types. */
  readonly contentTypes: readonly string[];
  /** Whether a request without `Content-Type` is refused. @default false */
  readonly typeRequired?: boolean;
  readonly description?: string;
}

/** What a route expects. Objects are best strict: an unknown field is an error that names it. */
export interface RouteInput {
  readonly params?: z.ZodObject;
  /** Absent: a query is refused. */
  readonly query?: z.ZodObject;
  /** Headers for the reference only; the handler reads them from {@link RouteRequest.raw}. Names in lower case. */
  readonly headers?: z.ZodObject;
  readonly body?: JsonBody | StreamBody;
}

/** One kind of success for the reference. */
export interface RouteResponse {
  readonly description: string;
  /** The JSON body; absent: no body, or one of {@link contentType}. */
  readonly body?: z.ZodType;
  /** One, or those that the request chooses from. @default "application/json" where there is a body */
  readonly contentType?: string | readonly string[];
  /** Response headers worth telling, with what they mean. */
  readonly headers?: Readonly<Record<string, string>>;
}

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : Record<never, never>;
type ParsedBody<Body> = Body extends JsonBody<infer Schema> ? z.output<Schema> : undefined;

/** What a handler is given: everything in it has been validated. */
export type RouteRequest<Input extends RouteInput, Auth extends RouteAuth> = CallerByAuth[Auth] & {
  readonly params: Parsed<Input["params"]>;
  readonly query: Parsed<Input["query"]>;
  readonly body: ParsedBody<Input["body"]>;
  /** Carries the request's id. */
  readonly log: Logger;
  /** Adds facts to the request's own line in the log; never a secret. */
  readonly note: (facts: Readonly<Record<string, unknown>>) => void;
  readonly raw: IncomingMessage;
};

/**
 * What a handler answers: a JSON body with a status, or `stream` to write the response by itself. A stream handler's
 * promise settles when it is done; it sets the status and headers, and an error before the first byte is answered as a
 * problem. Errors (`HttpProblem`, `OtaError`) are thrown.
 */
export type RouteResult =
  | {
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string | number>>;
    }
  | { readonly stream: (response: ServerResponse) => Promise<void> };

/**
 * One operation of the API: the single source of its routing, its validation and its page in the reference.
 *
 * A route module exports an array of these; `createApp` mounts them and the OpenAPI document describes them.
 */
export interface RouteDefinition {
  readonly method: RouteMethod;
  /** An OpenAPI path template: `/v1/attempts/{attemptId}/reports`. */
  readonly path: `/${string}`;
  readonly operationId: string;
  /** One line, without a full stop. */
  readonly summary: string;
  readonly description?: string;
  /** The group it belongs to in the reference. */
  readonly tag: string;
  readonly auth: RouteAuth;
  readonly request: RouteInput;
  /** Successes by status. */
  readonly responses: Readonly<Record<number, RouteResponse>>;
  /**
   * Problems of this route's own. Those that follow from its auth, its body and its fields need no mention
   * (see {@link commonProblems}).
   */
  readonly problems: readonly ProblemCode[];
  /**
   * Whether its requests may be refused for load, or for coming too often: the client asks again later and has lost
   * nothing. Never a report: it may be a device's last word.
   *
   * @default false
   */
  readonly refusable?: boolean;
  /** Whether its requests are logged at debug level only. @default false */
  readonly quiet?: boolean;
  // A method, so that a route with a narrower request is still a RouteDefinition; only `serveRoute` calls it.
  handler(request: RouteRequest<RouteInput, RouteAuth>, services: Services): Promise<RouteResult>;
}

/** What is told of a route to whoever looks on as it is served: limits, metrics, traces and the log. */
export type ServedRoute = Pick<RouteDefinition, "method" | "path" | "auth" | "refusable" | "quiet">;

/** Declares a route, with its handler's request typed by the schemas that validate it. */
export function defineRoute<const Input extends RouteInput, const Auth extends RouteAuth>(
  route: Omit<RouteDefinition, "request" | "auth" | "handler"> & {
    readonly auth: Auth;
    readonly request: Input;
    handler(request: RouteRequest<Input, Auth>, services: Services): Promise<RouteResult>;
  },
): RouteDefinition {
  return route as unknown as RouteDefinition;
}

/** Whether devices call it. */
export function isDeviceRoute({ auth }: Pick<RouteDefinition, "auth">): boolean {
  return auth === "device" || auth === "device-or-signature";
}

/** The problems that any route with this auth and input can answer, beside its own. */
export function commonProblems(route: RouteDefinition): readonly ProblemCode[] {
  const codes: ProblemCode[] = ["REQUEST_INVALID", "INTERNAL_ERROR"];
  if (route.auth !== "none") codes.push("CREDENTIALS_MISSING", "DATABASE_UNAVAILABLE");
  if (route.auth === "operator") codes.push("OPERATOR_KEY_INVALID");
  if (isDeviceRoute(route)) codes.push("DEVICE_TOKEN_INVALID", "GATEWAY_TOKEN_INVALID", "GATEWAY_TOKEN_REFUSED");
  if (route.refusable) codes.push("SERVICE_BUSY");
  if (route.refusable || route.auth === "operator") codes.push("RATE_LIMITED");
  const { body, params, query } = route.request;
  if (body !== undefined) codes.push("MEDIA_TYPE_UNSUPPORTED", "BODY_INCOMPLETE");
  if (body?.kind === "json") codes.push("JSON_INVALID", "BODY_TOO_LARGE", "REQUEST_TIMEOUT");
  if (body?.kind === "json" || params !== undefined || query !== undefined || isDeviceRoute(route))
    codes.push("FIELDS_INVALID");
  return codes;
}
