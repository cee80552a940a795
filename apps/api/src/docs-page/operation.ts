import type { JsonSchema, NamedSchemas } from "./schema-view.ts";

/** The parts of an OpenAPI operation that the page shows. */
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: RequestBody;
  readonly responses: Readonly<Record<string, Response>>;
}

/** What an operation takes. */
export interface RequestBody {
  readonly description?: string;
  readonly required?: boolean;
  readonly content: MediaTypes;
}

/** A value in the path, the query or the headers. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

/** One of its answers. */
export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description?: string }>>;
  readonly content?: MediaTypes;
}

type MediaTypes = Readonly<Record<string, { readonly schema?: JsonSchema }>>;

/** An operation where it stands in the document. */
export interface LocatedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** What the views need to know of the document around an operation. */
export interface ViewOptions {
  /** The base of the examples' URLs. */
  readonly server: string;
  readonly schemas: NamedSchemas;
}

/** Who may call an operation. */
export type Auth = "nobody" | "device" | "device-or-signature" | "operator";

/** Who may call an operation, by its security requirements. */
export function authOf({ security }: Operation): Auth {
  if (security.some((scheme) => "operatorKey" in scheme)) return "operator";
  if (!security.some((scheme) => "deviceToken" in scheme)) return "nobody";
  return security.length > 1 ? "device-or-signature" : "device";
}
