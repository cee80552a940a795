import { curlExample } from "./curl-example.ts";
import { type Html, html, inline, prose } from "./html.ts";
import {
  type Auth,
  authOf,
  type LocatedOperation,
  type Operation,
  type Parameter,
  type RequestBody,
  type Response,
  type ViewOptions,
} from "./operation.ts";
import { type Field, fieldTable, resolve, schemaView } from "./schema-view.ts";

const PROBLEM = "application/problem+json";

/** One operation: how to call it, what it takes, what it answers. */
export function operationView({ method, path, operation }: LocatedOperation, options: ViewOptions): Html {
  const { operationId, summary, description, parameters = [], requestBody } = operation;
  return html`<article id="${operationId}">
    <h3><a href="#${operationId}">${inline(summary)}</a></h3>
    <div class="call"><span class="method ${method}">${method}</span><code>${path}</code></div>
    <div class="auth">${WHO[authOf(operation)]}</div>
    ${description === undefined ? undefined : prose(description)}
    ${(["path", "query", "header"] as const).map((place) => parameterSection(place, parameters))}
    ${requestBody === undefined ? undefined : bodySection(requestBody, options)}
    ${responseSections(operation)}
    <details><summary>curl</summary><pre>${curlExample({ method, path, operation }, options)}</pre></details>
  </article>`;
}

const WHO: Readonly<Record<Auth, string>> = {
  nobody: "Needs no credentials.",
  device: "Needs a device token as Bearer.",
  "device-or-signature": "Needs a device token as Bearer, or a signed URL.",
  operator: "Needs an operator key as Bearer.",
};

const PLACES = { path: "In the path", query: "In the query", header: "Headers" };

function parameterSection(place: Parameter["in"], parameters: readonly Parameter[]): Html | undefined {
  const fields = parameters
    .filter((parameter) => parameter.in === place)
    .map(
      ({ name, required, description, schema }): Field => ({ name, schema, required: required === true, description }),
    );
  return fields.length === 0 ? undefined : html`<h4>${PLACES[place]}</h4>${fieldTable(fields)}`;
}

/** The fields of a body are shown where it is sent, also where the document has them by name. */
function bodySection(body: RequestBody, { schemas }: ViewOptions): Html {
  const optional = body.required === true ? undefined : "optional, ";
  return html`<h4>Body <small>${optional}${Object.keys(body.content).join(", ")}</small></h4>
    ${body.description === undefined ? undefined : prose(body.description)}
    ${Object.values(body.content).map(({ schema }) => schema && schemaView(resolve(schema, schemas)))}`;
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
  return html`<h4>${status} <small>${description}${Object.keys(content).map((type) => `, ${type}`)}</small></h4>
    ${Object.values(content).map(({ schema }) => schema && schemaView(schema))}
    ${named.length === 0 ? undefined : html`<table><tbody>${named.map(headerRow)}</tbody></table>`}`;
}

function headerRow([name, { description }]: readonly [string, { readonly description?: string }]): Html {
  return html`<tr><th scope="row"><code>${name}</code><small>header</small></th><td>${description}</td></tr>`;
}
