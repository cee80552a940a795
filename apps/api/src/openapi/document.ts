import { z } from "zod";
import {
  type CreateDocumentOptions,
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from "zod-openapi";
import { SERIAL_HEADER } from "../http/credentials.ts";
import { PROBLEMS, type ProblemCode } from "../http/problems.ts";
import {
  commonProblems,
  isDeviceRoute,
  type RouteAuth,
  type RouteDefinition,
  type RouteInput,
  type RouteResponse,
} from "../http/route.ts";
import { problemSchema, serialSchema } from "../http/schemas.ts";

/** The OpenAPI 3.1 document, as plain JSON. */
export type OpenApiDocument = ReturnType<typeof createDocument>;

/** What {@link openApiDocument} says beside the routes. */
export interface OpenApiOptions {
  /** Of the service. */
  readonly version: string;
  /** Where clients reach it; the only entry of `servers`. */
  readonly publicUrl: string;
}

/**
 * Describes routes as an OpenAPI 3.1 document, made of the very schemas that validate: each route is an operation, with
 * its successes and with every problem that it can answer.
 */
export function openApiDocument(routes: readonly RouteDefinition[], options: OpenApiOptions): OpenApiDocument {
  const paths: NonNullable<ZodOpenApiObject["paths"]> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) };
  }
  const document: ZodOpenApiObject = {
    openapi: "3.1.1",
    info: {
      title: "OTA service",
      version: options.version,
      description: INTRODUCTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: options.publicUrl }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { securitySchemes: SECURITY_SCHEMES },
  };
  return createDocument(document, { override: tidy });
}

const tidy: NonNullable<CreateDocumentOptions["override"]> = ({ jsonSchema, io }) => {
  // An answer may gain fields with any release: a client that is made of the document must not refuse them.
  if (io === "output" && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  // What zod writes for a format or an integer is no news to whoever knows the format, and hundreds of characters long.
  if (jsonSchema.format === "date-time" || jsonSchema.format === "uuid") delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
};

const INTRODUCTION = `
A device asks whether there is firmware for it; the service answers with exactly one upgrade record per device and firmware.

Errors are problem details (RFC 9457) with a stable \`code\`. Lists are pages: follow \`nextCursor\`. Times are ISO 8601 in UTC.
A \`503\` with \`SERVICE_BUSY\` and a \`429\` with \`RATE_LIMITED\` carry \`Retry-After\`; nothing was changed. Reports are never answered so for load.

Devices that speak hawkBit's Direct Device Integration API (DDI v1) are served below \`/DEFAULT/controller/v1/{controllerId}\`. Its resources are not in this document: their shapes, errors and credentials are hawkBit's, not this service's, and its clients come with them.
`.trim();

const SECURITY_SCHEMES = {
  deviceToken: {
    type: "http",
    scheme: "bearer",
    description: "The token that the device's registration answered, or a gateway's.",
  },
  operatorKey: { type: "http", scheme: "bearer", description: "An operator key." },
} as const;

const SECURITY: Readonly<Record<RouteAuth, NonNullable<ZodOpenApiOperationObject["security"]>>> = {
  none: [],
  device: [{ deviceToken: [] }],
  // An empty requirement: the signature in the URL is enough.
  "device-or-signature": [{ deviceToken: [] }, {}],
  operator: [{ operatorKey: [] }],
};

function operation(route: RouteDefinition): ZodOpenApiOperationObject {
  const { params, query, body } = route.request;
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [route.tag],
    security: SECURITY[route.auth],
    requestParams: {
      ...(params === undefined ? {} : { path: params }),
      ...(query === undefined ? {} : { query }),
      ...headerParameters(route),
    },
    ...(body === undefined ? {} : { requestBody: requestBody(body) }),
    responses: { ...successes(route), ...problems(route) },
  };
}

/** What the route reads, and the header by which a device asks through a gateway. */
function headerParameters(
  route: RouteDefinition,
): Pick<NonNullable<ZodOpenApiOperationObject["requestParams"]>, "header"> {
  const { headers } = route.request;
  if (!isDeviceRoute(route)) return headers === undefined ? {} : { header: headers };
  const serial = { [SERIAL_HEADER]: serialSchema.optional().meta({ description: SERIAL_HEADER_USE }) };
  return { header: headers === undefined ? z.object(serial) : headers.extend(serial) };
}

const SERIAL_HEADER_USE =
  "The device's serial, where it has no token of its own and the Bearer token is a gateway's. A check registers a serial " +
  "that is not known yet.";

function requestBody(body: NonNullable<RouteInput["body"]>): NonNullable<ZodOpenApiOperationObject["requestBody"]> {
  const description = body.description === undefined ? {} : { description: body.description };
  if (body.kind === "json") {
    return {
      ...description,
      required: body.optional !== true,
      content: { "application/json": { schema: body.schema } },
    };
  }
  return { ...description, required: true, content: Object.fromEntries(body.contentTypes.map((type) => [type, {}])) };
}

function successes(route: RouteDefinition): ZodOpenApiResponsesObject {
  return Object.fromEntries(Object.entries(route.responses).map(([status, response]) => [status, success(response)]));
}

function success(response: RouteResponse): ZodOpenApiResponseObject {
  return {
    description: response.description,
    ...(response.headers === undefined ? {} : { headers: headerObjects(response.headers) }),
    ...content(response),
  };
}

function content({ body, contentType }: RouteResponse): Pick<ZodOpenApiResponseObject, "content"> {
  if (body !== undefined) return { content: { "application/json": { schema: body } } };
  // A body of bytes has no schema in OpenAPI 3.1.
  const types = contentType === undefined ? [] : [contentType].flat();
  return types.length === 0 ? {} : { content: Object.fromEntries(types.map((type) => [type, {}])) };
}

function headerObjects(headers: Readonly<Record<string, string>>): NonNullable<ZodOpenApiResponseObject["headers"]> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: "string" } }]),
  );
}

/** One response for each status, naming the codes that come with it. */
function problems(route: RouteDefinition): ZodOpenApiResponsesObject {
  const codes = new Set<ProblemCode>([...commonProblems(route), ...route.problems]);
  const byStatus = Map.groupBy(codes, (code) => PROBLEMS[code].status);
  return Object.fromEntries(
    [...byStatus]
      .sort(([one], [other]) => one - other)
      .map(([status, of]) => [
        status,
        {
          description: of.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join("\n\n"),
          content: { "application/problem+json": { schema: problemSchema as z.ZodType } },
        },
      ]),
  );
}
