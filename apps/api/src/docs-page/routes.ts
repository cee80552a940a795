import type { ServerResponse } from "node:http";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { type OpenApiDocument, type OpenApiOptions, openApiDocument } from "../openapi/document.ts";
import { DOCS_PAGE_POLICY, docsPage } from "./page.ts";

/**
 * The routes that describe all the others, and themselves: `/openapi.json` and `/docs`. Both are made at the first
 * request and kept while they are asked for by the same URL of the service.
 */
export function documentationRoutes(
  described: readonly RouteDefinition[],
  options: Pick<OpenApiOptions, "version">,
): readonly RouteDefinition[] {
  const document = (publicUrl: string): OpenApiDocument =>
    openApiDocument([...described, ...routes], { ...options, publicUrl });
  const json = keepLast((publicUrl) => JSON.stringify(document(publicUrl), null, 2));
  const page = keepLast((publicUrl) => docsPage(document(publicUrl)));

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
      async handler({ raw }, { publicUrlOf }) {
        return send({ "Content-Type": "application/json; charset=utf-8" }, json(publicUrlOf(raw)));
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
      async handler({ raw }, { publicUrlOf }) {
        return send(
          { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": DOCS_PAGE_POLICY },
          page(publicUrlOf(raw)),
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

/** Makes a text for each URL once; only the last one is kept, so that nobody fills the memory with names of hosts. */
function keepLast(make: (publicUrl: string) => string): (publicUrl: string) => string {
  let last: { readonly publicUrl: string; readonly text: string } | undefined;
  return (publicUrl) => {
    if (last?.publicUrl !== publicUrl) last = { publicUrl, text: make(publicUrl) };
    return last.text;
  };
}
