import { type Content, type Html, html, inline } from "./html.ts";

/** The parts of a JSON Schema that our documents use. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly example?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

/** One field of a request or answer, as a row of a table. */
export interface Field {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
  /** Of the field itself; it counts before the schema's. */
  readonly description?: string | undefined;
}

/** A table of fields; the fields of objects within follow their object. */
export function fieldTable(fields: readonly Field[]): Html {
  return html`<table><tbody>${fields.flatMap((field) => rows(field, field.name))}</tbody></table>`;
}

/** The named schemas of the document, which `$ref` leads to. */
export type NamedSchemas = Readonly<Record<string, JsonSchema>>;

/** The schema itself where it is only named. */
export function resolve(schema: JsonSchema, schemas: NamedSchemas): JsonSchema {
  return schema.$ref === undefined ? schema : (schemas[refName(schema.$ref)] ?? schema);
}

/** What a schema describes: a table for an object, one for each kind of object, else its type in a line. */
export function schemaView(schema: JsonSchema): Html {
  const kinds = kindsOf(schema);
  if (kinds !== undefined) {
    return html`${kinds.map((kind, index) => html`${index === 0 ? undefined : html`<h4>or</h4>`}${schemaView(kind)}`)}`;
  }
  const fields = fieldsOf(schema);
  if (fields !== undefined && fields.length > 0) return fieldTable(fields);
  return html`<p>${typeOf(schema)} ${describe(schema)}</p>`;
}

function rows({ name: _, schema, required, description }: Field, path: string): Html[] {
  const inner = fieldsOf(schema) ?? [];
  const list = isList(schema) ? "[]" : "";
  return [
    html`<tr>
      <th scope="row"><code>${path}</code>${required ? undefined : html`<small>optional</small>`}</th>
      <td>${typeOf(schema)} ${describe(schema, description)}</td>
    </tr>`,
    ...inner.flatMap((field) => rows(field, `${path}${list}.${field.name}`)),
  ];
}

function describe(schema: JsonSchema, description = schema.description): Content {
  return [description === undefined ? undefined : html`<div>${inline(description)}</div>`, limits(schema)];
}

/** The fields of an object, of the objects in a list, of the one object that may be null, or of all kinds together. */
function fieldsOf(schema: JsonSchema): Field[] | undefined {
  const kinds = kindsOf(schema);
  if (kinds !== undefined) return mergedFields(kinds);
  const object = schema.items ?? onlyVariant(schema) ?? schema;
  if (object.properties === undefined) return undefined;
  const required = new Set(object.required);
  return Object.entries(object.properties).map(([name, schema]) => ({ name, schema, required: required.has(name) }));
}

/** The kinds of object that a value may be, where there are several. */
function kindsOf(schema: JsonSchema): readonly JsonSchema[] | undefined {
  const variants = variantsOf(schema) ?? [];
  return variants.length > 1 && variants.every(({ properties }) => properties !== undefined) ? variants : undefined;
}

/** A field is required where every kind requires it; where kinds differ in it, it is any of theirs. */
function mergedFields(kinds: readonly JsonSchema[]): Field[] {
  const fields = kinds.flatMap((kind) => fieldsOf(kind) ?? []);
  return [...Map.groupBy(fields, ({ name }) => name)].map(([name, same]) => {
    const schemas = [...new Map(same.map(({ schema }) => [JSON.stringify(schema), schema])).values()];
    const [only = {}] = schemas;
    const required = same.length === kinds.length && same.every((field) => field.required);
    return { name, required, schema: schemas.length === 1 ? only : { anyOf: schemas } };
  });
}

function isList(schema: JsonSchema): boolean {
  return (onlyVariant(schema) ?? schema).items !== undefined;
}

/** Of a schema that is "this or null": this. */
function onlyVariant(schema: JsonSchema): JsonSchema | undefined {
  const variants = variantsOf(schema)?.filter(({ type }) => type !== "null");
  return variants?.length === 1 ? variants[0] : undefined;
}

function variantsOf(schema: JsonSchema): readonly JsonSchema[] | undefined {
  return schema.anyOf ?? schema.oneOf;
}

/** A schema's type in words: `string (uuid)`, `list of Firmware`, `Rollout or null`. */
function typeOf(schema: JsonSchema): Html {
  return html`<span class="type">${typeWords(schema)}</span>`;
}

function typeWords(schema: JsonSchema): Content {
  if (schema.$ref !== undefined) {
    const name = refName(schema.$ref);
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  const variants = variantsOf(schema);
  if (kindsOf(schema) !== undefined) return "object";
  if (variants !== undefined) return variants.map((variant, index) => [index === 0 ? "" : " or ", typeWords(variant)]);
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum !== undefined) return separated(schema.enum.map((value) => html`<code>${String(value)}</code>`));
  if (schema.items !== undefined) return ["list of ", typeWords(schema.items)];
  const types = schema.type === undefined ? "any JSON" : [schema.type].flat().join(" or ");
  return schema.format === undefined ? types : `${types} (${schema.format})`;
}

function refName(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}

function separated(values: readonly Html[]): Content {
  return values.map((value, index) => [index === 0 ? "" : " | ", value]);
}

function limits(schema: JsonSchema): Html | undefined {
  const { minimum, maximum, minLength, maxLength, pattern, default: standard } = schema;
  const example = schema.example ?? schema.examples?.[0];
  const words: Content[] = [
    span(minimum, maximum),
    minLength === undefined && maxLength === undefined ? undefined : `${span(minLength, maxLength)} characters`,
    pattern === undefined ? undefined : html`matches <code>${pattern}</code>`,
    standard === undefined ? undefined : html`default <code>${JSON.stringify(standard)}</code>`,
    example === undefined
      ? undefined
      : html`for example <code>${typeof example === "object" ? JSON.stringify(example) : String(example)}</code>`,
  ].filter((word) => word !== undefined);
  if (words.length === 0) return undefined;
  return html`<small>${words.map((word, index) => [index === 0 ? "" : " · ", word])}</small>`;
}

function span(least: number | undefined, most: number | undefined): string | undefined {
  if (least !== undefined && most !== undefined) return `${least} to ${most}`;
  if (least !== undefined) return `at least ${least}`;
  return most === undefined ? undefined : `at most ${most}`;
}
