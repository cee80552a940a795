import type { ServerResponse } from "node:http";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { type OpenApiDocument, type OpenApiOptions, openApiDocument } from "../openapi/document.ts";
import { DOCS_PAGE_POLICY, docsPage } from "./page.ts";

/**
 * The routes that describe all the others, and themselves: `/openapi.json` and `/docs`. Both are made at the first
 * request and kept.
 */
export function documentationRoutes(
  described: readonly RouteDefinition[],
  options: OpenApiOptions,
): readonly RouteDefinition[] {
  const document = once((): OpenApiDocument => openApiDocument([...described, ...routes], options));
  const json = once(() => JSON.stringify(document(), null, 2));
  const page = once(() => docsPage(document()));

  const routes: readonly RouteDefinition[] = [
    defineRoute({
      method: "GET",
      path: "/openapi.json",
      operationId: "getOpenApiDocument",
      summary: "This reference as an OpenAPI 3.1 document",
      tag: "Service",
      auth: "none",
      request: {},
      responses: { 200: { description: "The document", body: z.looseObject({ openapi: z.string() }) } },
      problems: [],
      async handler() {
        return send({ "Content-Type": "application/json; charset=utf-8" }, json());
      },
    }),
    defineRoute({
      method: "GET",
      path: "/docs",
      operationId: "getDocumentationPage",
      summary: "This reference as a page to read",
      tag: "Service",
      auth: "none",
      request: {},
      responses: { 200: { description: "The page", contentType: "text/html" } },
      problems: [],
      async handler() {
        return send(
          { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": DOCS_PAGE_POLICY },
          page(),
        );
      },
    }),
  ];
  return routes;
}

function send(headers: Readonly<Record<string, string>>, text: string) {
  return {
    async stream(response: ServerResponse): Promise<void> {
      response
        .writeHead(200, { ...headers, "Content-Length": Buffer.byteLength(text), "Cache-Control": "no-cache" })
        .end(text);
    },
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
