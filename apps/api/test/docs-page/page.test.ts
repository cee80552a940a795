import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { html, inline, prose } from "../../src/docs-page/html.ts";
import { DOCS_PAGE_POLICY, docsPage } from "../../src/docs-page/page.ts";
import { PROBLEMS } from "../../src/http/problems.ts";
import { allRoutes, document } from "../support/document-check.ts";

const page = docsPage(document);

describe("docsPage", () => {
  test("loads nothing: no script, no image, no font, no style from anywhere", () => {
    expect(page).not.toMatch(/<(script|link|img|iframe|object|embed)\b|@import|url\(|\son\w+=/i);
    expect([...page.matchAll(/href="([^"]*)"/g)].map(([, to]) => to).filter((to) => !to?.startsWith("#"))).toEqual([
      "openapi.json",
    ]);
  });

  test("its policy allows its own style sheet alone", () => {
    const style = /<style>(.*?)<\/style>/s.exec(page)?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    expect(DOCS_PAGE_POLICY).toContain(`default-src 'none'; style-src 'sha256-${hash}';`);
    expect(page).not.toContain("style=");
  });

  test("has every operation, every schema and every problem, each with an address", () => {
    const anchors = [
      ...allRoutes.map(({ operationId }) => operationId),
      ...Object.keys(document.components?.schemas ?? {}).map((name) => `schema-${name}`),
      ...Object.keys(PROBLEMS),
    ];
    for (const anchor of anchors) expect(page, anchor).toContain(`id="${anchor}"`);
  });

  test("leads nowhere that is not there, and names nothing twice", () => {
    const ids = [...page.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [, target] of page.matchAll(/href="#([^"]*)"/g)) expect(ids).toContain(target);
  });

  test("shows examples as JSON where they are objects or lists", () => {
    expect(page).toContain("for example <code>{&quot;");
    expect(page).not.toContain("[object Object]");
  });

  test("markup in a description stays text", () => {
    const hostile = structuredClone(document);
    hostile.info.title = `<script>alert("x")</script>`;
    expect(docsPage(hostile)).toContain("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;: API reference");
    expect(docsPage(hostile)).not.toContain("<script>");
  });
});

describe("html", () => {
  test("escapes what is put in, in text and attributes, and joins lists", () => {
    expect(html`<a title="${`"'<>&`}">${["<", html`<b>${1}</b>`, undefined]}</a>`.text).toBe(
      `<a title="&quot;&#39;&lt;&gt;&amp;">&lt;<b>1</b></a>`,
    );
  });

  test("prose has paragraphs and code", () => {
    expect(prose("One `a<b`.\n\nTwo.").text).toBe("<p>One <code>a&lt;b</code>.</p><p>Two.</p>");
    expect(inline("no code").text).toBe("no code");
  });
});
