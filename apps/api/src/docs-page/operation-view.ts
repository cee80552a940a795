import { type Html, html, inline, prose } from "./html.ts";
import { type Field, fieldTable, type JsonSchema, schemaView } from "./schema-view.ts";

/** The parts of an OpenAPI operation that the page shows. */
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly description?: string; readonly required?: boolean; readonly content: MediaTypes };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

interface Response {
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

const PROBLEM = "application/problem+json";

/** One operation: how to call it, what it takes, what it answers. */
export function operationView(
  { method, path, operation }: LocatedOperation,
  options: { readonly server: string },
): Html {
  const { operationId, summary, description, parameters = [], requestBody } = operation;
  return html`<article id="${operationId}">
    <h3><a href="#${operationId}">${inline(summary)}</a></h3>
    <div class="call"><span class="method ${method}">${method}</span><code>${path}</code></div>
    <div class="auth">${WHO[authOf(operation)]}</div>
    ${description === undefined ? undefined : prose(description)}
    ${(["path", "query", "header"] as const).map((place) => parameterSection(place, parameters))}
    ${requestBody === undefined ? undefined : bodySection(requestBody)}
    ${responseSections(operation)}
    <details><summary>curl</summary><pre>${curl({ method, path, operation }, options.server)}</pre></details>
  </article>`;
}

type Auth = "nobody" | "device" | "device-or-signature" | "operator";

const WHO: Readonly<Record<Auth, string>> = {
  nobody: "Needs no credentials.",
  device: "Needs a device token as Bearer.",
  "device-or-signature": "Needs a device token as Bearer, or a signed URL.",
  operator: "Needs an operator key as Bearer.",
};

function authOf({ security }: Operation): Auth {
  if (security.some((scheme) => "operatorKey" in scheme)) return "operator";
  if (!security.some((scheme) => "deviceToken" in scheme)) return "nobody";
  return security.length > 1 ? "device-or-signature" : "device";
}

const PLACES = { path: "In the path", query: "In the query", header: "Headers" };

function parameterSection(place: Parameter["in"], parameters: readonly Parameter[]): Html | undefined {
  const fields = parameters
    .filter((parameter) => parameter.in === place)
    .map(
      ({ name, required, description, schema }): Field => ({ name, schema, required: required === true, description }),
    );
  return fields.length === 0 ? undefined : html`<h4>${PLACES[place]}</h4>${fieldTable(fields)}`;
}

function bodySection(body: NonNullable<Operation["requestBody"]>): Html {
  return html`<h4>Body <small>${body.required === true ? undefined : "optional, "}${Object.keys(body.content).join(", ")}</small></h4>
    ${body.description === undefined ? undefined : prose(body.description)}
    ${Object.values(body.content).map(({ schema }) => (schema === undefined ? undefined : schemaView(schema)))}`;
}

function responseSections({ responses }: Operation): Html[] {
  const all = Object.entries(responses);
  const isProblem = ([, { content }]: [string, Response]) => content !== undefined && PROBLEM in content;
  return [
    ...all.filter((entry) => !isProblem(entry)).map(([status, response]) => successSection(status, response)),
    html`<details><summary>Problems</summary><table><tbody>
      ${all
        .filter(isProblem)
        .map(
          ([status, { description }]) => html`<tr><th scope="row">${status}</th><td>${prose(description)}</td></tr>`,
        )}
    </tbody></table></details>`,
  ];
}

function successSection(status: string, { description, headers = {}, content = {} }: Response): Html {
  const named = Object.entries(headers);
  return html`<h4>${status} <small>${description}</small></h4>
    ${Object.entries(content).map(([type, { schema }]) => (schema === undefined ? html`<p class="type">${type}</p>` : schemaView(schema)))}
    ${named.length === 0 ? undefined : html`<p><small>${named.map(([name, { description }], index) => [index === 0 ? "" : " · ", html`<code>${name}</code>: ${description}`])}</small></p>`}`;
}

function curl({ method, path, operation }: LocatedOperation, server: string): string {
  const auth = authOf(operation);
  const types = Object.keys(operation.requestBody?.content ?? {});
  const query = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === "query" && parameter.required === true)
    .map(({ name }) => `${name}=…`)
    .join("&");
  const lines = [
    `curl${method === "GET" ? "" : ` -X ${method}`} "${server}${path}${query === "" ? "" : `?${query}`}"`,
    auth === "operator" ? '-H "Authorization: Bearer $OPERATOR_KEY"' : undefined,
    auth === "device" || auth === "device-or-signature" ? '-H "Authorization: Bearer $DEVICE_TOKEN"' : undefined,
    ...types.flatMap((type) => [
      `-H "Content-Type: ${type}"`,
      type === "application/json" ? "-d '{…}'" : "--data-binary @firmware.bin",
    ]),
  ];
  return lines.filter((line) => line !== undefined).join(" \\\n  ");
}
