import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, test } from "vitest";
import { PROBLEMS } from "../../src/http/problems.ts";
import { commonProblems } from "../../src/http/route.ts";
import { openApiDocument } from "../../src/openapi/document.ts";
import { allRoutes, document } from "../support/document-check.ts";

interface Described {
  readonly operationId: string;
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required?: boolean }[];
  readonly responses: Readonly<Record<string, unknown>>;
  readonly security: readonly Readonly<Record<string, unknown>>[];
}

const operations = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
  Object.entries(item as Readonly<Record<string, Described>>).map(([method, operation]) => ({
    path,
    method,
    operation,
  })),
);

describe("openApiDocument", () => {
  test("is valid OpenAPI 3.1", async () => {
    expect(await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>)).toEqual({
      valid: true,
    });
    expect(document.openapi).toMatch(/^3\.1\./);
  });

  test("the validator would notice a fault", async () => {
    const faulty = { ...structuredClone(document), paths: { "/x": { get: { responses: { 200: {} } } } } };
    expect(await new Validator().validate(faulty as unknown as Record<string, unknown>)).toMatchObject({
      valid: false,
    });
  });

  test("describes every route once, and nothing else", () => {
    const described = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`);
    expect(described.sort()).toEqual(allRoutes.map(({ path, method }) => `${method} ${path}`).sort());
  });

  test("names every operation by an id of its own", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test.each(operations)("$method $path: its path's parameters are described and required", ({ path, operation }) => {
    const inTemplate = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const described = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
    expect(described.map(({ name }) => name)).toEqual(inTemplate);
    expect(described.every(({ required }) => required === true)).toBe(true);
  });

  test.each(allRoutes)("$method $path: every problem that it can answer is there, by its status", (route) => {
    const found = operations.find(({ path, method }) => path === route.path && method === route.method.toLowerCase());
    for (const code of [...commonProblems(route), ...route.problems]) {
      const response = found?.operation.responses[String(PROBLEMS[code].status)];
      expect(JSON.stringify(response), code).toContain(`\`${code}\``);
    }
  });

  test("says who may call what", () => {
    const security = (id: string) =>
      operations.find(({ operation }) => operation.operationId === id)?.operation.security;
    expect(security("checkForUpdate")).toEqual([{ deviceToken: [] }]);
    expect(security("downloadArtifact")).toEqual([{ deviceToken: [] }, {}]);
    expect(security("createProduct")).toEqual([{ operatorKey: [] }]);
    expect(security("getDocumentationPage")).toEqual([]);
  });

  test("what is named elsewhere is referred to and not changed on the way", () => {
    const parts: object[] = [];
    JSON.stringify(document, (_key, value) => {
      if (typeof value === "object" && value !== null && "$ref" in value) parts.push(value);
      return value;
    });
    expect(parts.length).toBeGreaterThan(10);
    for (const part of parts) expect(["$ref", "description"]).toEqual(expect.arrayContaining(Object.keys(part)));
  });

  test("an answer may gain fields, a request may not", () => {
    const schemas = document.components?.schemas as Readonly<Record<string, { additionalProperties?: unknown }>>;
    expect(schemas["Firmware"]).not.toHaveProperty("additionalProperties");
    expect(schemas["NewProduct"]?.additionalProperties).toBe(false);
  });

  test("a route that is not given is not described", () => {
    const some = openApiDocument(allRoutes.slice(0, 1), { version: "1", publicUrl: "http://x" });
    expect(Object.keys(some.paths ?? {})).toEqual([allRoutes[0]?.path]);
  });
});
