import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { expect } from "vitest";
import { apiRoutes } from "../../src/app.ts";
import type { Operation } from "../../src/docs-page/operation.ts";
import { documentationRoutes } from "../../src/docs-page/routes.ts";
import { type OpenApiDocument, openApiDocument } from "../../src/openapi/document.ts";

const options = { version: "1.2.3", publicUrl: "http://127.0.0.1:1" };

/** All routes of the service. */
export const allRoutes = [...apiRoutes, ...documentationRoutes(apiRoutes, options)];

/** The document that describes them, as clients get it. */
export const document = JSON.parse(JSON.stringify(openApiDocument(allRoutes, options))) as OpenApiDocument;

/** One real answer of the service. */
export interface Answered {
  readonly method: string;
  /** With or without a query. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string | undefined;
  /** Parsed, where it is JSON. */
  readonly body: unknown;
}

/** Fails where a real answer is not what the document says: its status, its type, every field of its body. */
export function expectDocumented(answered: Answered): void {
  const found = findOperation(answered);
  // What no route takes is answered by none: 404 and 405 have no place in a document of operations.
  if (found === undefined) {
    expect([404, 405], `${answered.method} ${answered.path} is not in the document`).toContain(answered.status);
    return;
  }
  const where = `${answered.method} ${found.template} ${answered.status}`;
  const response = found.operation.responses[String(answered.status)];
  expect(response, `${where} is not documented`).toBeDefined();
  const type = answered.contentType?.split(";", 1)[0];
  const documentedTypes = Object.keys(response?.content ?? {});
  if (answered.method === "HEAD" || documentedTypes.length === 0) return;
  expect(documentedTypes, `${where}: content type`).toContain(type);
  // Lines of JSON are no one value.
  if (type === undefined || !/[/+]json$/.test(type)) return;
  const validate = validator([
    "paths",
    found.template,
    found.method,
    "responses",
    String(answered.status),
    "content",
    type,
    "schema",
  ]);
  expect(validate(answered.body) ? "valid" : validate.errors, `${where}: body ${JSON.stringify(answered.body)}`).toBe(
    "valid",
  );
}

interface FoundOperation {
  readonly template: string;
  readonly method: string;
  readonly operation: Operation;
}

function findOperation({ method, path }: Answered): FoundOperation | undefined {
  const bare = path.split("?", 1)[0] ?? "";
  const wanted = method === "HEAD" ? "get" : method.toLowerCase();
  for (const [template, item] of Object.entries(document.paths ?? {})) {
    const operation = (item as Readonly<Record<string, Operation>>)[wanted];
    const pattern = new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+").replaceAll(".", "\\.")}$`);
    if (operation !== undefined && pattern.test(bare)) return { template, method: wanted, operation };
  }
  return undefined;
}

const ajv = formats.default(new Ajv2020({ strict: false, allErrors: true }));
ajv.addSchema(closed(document), "document");

/**
 * The document with every object closed that it leaves open: clients must take a field that they don't know, but here one
 * that is not described is a fault.
 */
function closed<Node>(node: Node): Node {
  if (Array.isArray(node)) return node.map(closed) as Node;
  if (typeof node !== "object" || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]));
  if ("properties" in copy && !("additionalProperties" in copy)) copy["additionalProperties"] = false;
  return copy as Node;
}

/** By a JSON Pointer into the document, so that its `$ref`s lead where they lead there. */
function validator(steps: readonly string[]): ValidateFunction {
  const pointer = steps.map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
  const validate = ajv.getSchema(`document#/${pointer}`);
  if (validate === undefined) throw new Error(`The document has no schema at ${pointer}.`);
  return validate;
}
