import { authOf, type LocatedOperation, type ViewOptions } from "./operation.ts";
import { type JsonSchema, type NamedSchemas, resolve } from "./schema-view.ts";

/** A command line that calls the operation, with shell variables for what the caller must fill in. */
export function curlExample({ method, path, operation }: LocatedOperation, { server, schemas }: ViewOptions): string {
  const query = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === "query" && parameter.required === true)
    .map(({ name }, index) => `${index === 0 ? "?" : "&"}${name}=${variable(name)}`)
    .join("");
  const url = `${server}${path.replace(/\{(\w+)\}/g, (_, name: string) => variable(name))}${query}`;
  const credentials = {
    nobody: undefined,
    operator: "OPERATOR_KEY",
    device: "DEVICE_TOKEN",
    "device-or-signature": "DEVICE_TOKEN",
  };
  const credential = credentials[authOf(operation)];
  return [
    `curl${method === "GET" ? "" : ` -X ${method}`} "${url}"`,
    ...(credential === undefined ? [] : [`-H "Authorization: Bearer $${credential}"`]),
    ...Object.entries(operation.requestBody?.content ?? {}).flatMap(([type, { schema }]) => [
      `-H "Content-Type: ${type}"`,
      schema === undefined ? "--data-binary @firmware.bin" : `-d '${JSON.stringify(exampleOf(schema, schemas))}'`,
    ]),
  ].join(" \\\n  ");
}

/** `firmwareId` becomes `$FIRMWARE_ID`. */
function variable(name: string): string {
  return `$${name.replace(/(?=[A-Z])/g, "_").toUpperCase()}`;
}

/** The smallest value that fits, in the words of the schema's own examples. */
function exampleOf(given: JsonSchema, schemas: NamedSchemas): unknown {
  const schema = resolve(given, schemas);
  const ready = schema.example ?? schema.examples?.[0] ?? schema.default ?? schema.const ?? schema.enum?.[0];
  if (ready !== undefined) return ready;
  const variant = (schema.anyOf ?? schema.oneOf)?.[0];
  if (variant !== undefined) return exampleOf(variant, schemas);
  if (schema.properties !== undefined) {
    const { properties, required = Object.keys(properties).slice(0, 1) } = schema;
    return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {}, schemas)]));
  }
  if (schema.items !== undefined) return [exampleOf(schema.items, schemas)];
  const byType: Readonly<Record<string, unknown>> = {
    integer: schema.minimum ?? 0,
    number: 0,
    boolean: true,
    string: "…",
  };
  return byType[[schema.type].flat()[0] ?? ""] ?? {};
}
