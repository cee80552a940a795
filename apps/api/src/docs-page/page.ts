import { createHash } from "node:crypto";
import { PROBLEMS } from "../http/problems.ts";
import type { OpenApiDocument } from "../openapi/document.ts";
import { Html, html, inline, prose } from "./html.ts";
import type { LocatedOperation, Operation } from "./operation.ts";
import { operationView } from "./operation-view.ts";
import { type NamedSchemas, schemaView } from "./schema-view.ts";
import { STYLE } from "./style.ts";

/** The reference page of an OpenAPI document: one HTML file that loads nothing and needs no script. */
export function docsPage(document: OpenApiDocument): string {
  const operations = operationsOf(document);
  const groups = [...Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "Other")];
  const schemas = sorted((document.components?.schemas ?? {}) as NamedSchemas);
  const { title, version, description = "" } = document.info;
  const server = document.servers?.[0]?.url ?? "";
  return `<!doctype html>\n${
    html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}: API reference</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<a class="skip" href="#content">To the content</a>
<div class="layout">
<nav id="contents" aria-label="Contents">${navigation(groups, Object.keys(schemas))}</nav>
<main id="content">
<h1>${title}</h1>
<p><small>Version ${version} · <code>${server}</code> · <a href="openapi.json">openapi.json</a><span class="narrow"> · <a href="#contents">Contents</a></span></small></p>
${prose(description)}
${groups.map(
  ([tag, group]) =>
    html`<section id="${anchor(tag)}"><h2>${tag}</h2>${group.map((one) => operationView(one, { server, schemas }))}</section>`,
)}
<section id="schemas"><h2>Schemas</h2>
${Object.entries(schemas).map(
  ([name, schema]) => html`<article id="schema-${name}"><h3>${name}</h3>
    ${schema.description === undefined ? undefined : prose(schema.description)}${schemaView(schema)}</article>`,
)}
</section>
<section id="problems"><h2>Problems</h2>
<p>What can go wrong, by the stable <code>code</code> of the answer.</p>
<table><tbody>
${Object.entries(PROBLEMS).map(
  ([code, { status, title }]) =>
    html`<tr id="${code}"><th scope="row"><code>${code}</code></th><td>${status} ${title}.</td></tr>`,
)}
</tbody></table>
</section>
</main>
</div>
</body>
</html>`.text
  }\n`;
}

/** Lets the page use its own style sheet, and nothing else in the world. */
export const DOCS_PAGE_POLICY: string =
  `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function operationsOf(document: OpenApiDocument): LocatedOperation[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item as Readonly<Record<string, Operation>>).map(([method, operation]) => ({
      ...{ path, operation, method: method.toUpperCase() },
    })),
  );
}

function navigation(
  groups: readonly (readonly [string, readonly LocatedOperation[]])[],
  schemaNames: readonly string[],
): Html {
  return html`${groups.map(
    ([tag, group]) =>
      html`<h2><a href="#${anchor(tag)}">${tag}</a></h2><ul>${group.map(
        ({ operation }) => html`<li><a href="#${operation.operationId}">${inline(operation.summary)}</a></li>`,
      )}</ul>`,
  )}<h2>Schemas</h2><ul>${schemaNames.map((name) => html`<li><a href="#schema-${name}">${name}</a></li>`)}</ul>
  <h2><a href="#problems">Problems</a></h2>`;
}

function anchor(tag: string): string {
  return `tag-${tag.toLowerCase().replaceAll(" ", "-")}`;
}

function sorted(schemas: NamedSchemas): NamedSchemas {
  return Object.fromEntries(Object.entries(schemas).sort(([one], [other]) => (one < other ? -1 : 1)));
}
