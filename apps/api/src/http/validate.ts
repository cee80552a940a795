import type { z } from "zod";
import { type FieldIssue, parseFields } from "./field-issues.ts";
import { type FieldProblem, HttpProblem } from "./problems.ts";

/** How many invalid fields are told: the first ones are enough to go on, and the answer stays small. */
const MAX_FIELD_PROBLEMS = 20;

/** The parts of a request that a schema may describe. */
export interface InputSchemas {
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
}

/** The parts of a request as they came. */
export interface RawInput {
  readonly params: unknown;
  readonly query: object;
  readonly body: unknown;
}

/** The parts of a request as the schemas have them. */
export type ValidInput = Readonly<Record<keyof RawInput, unknown>>;

/**
 * Validates all parts of a request at once. A part without a schema is empty.
 *
 * @throws {HttpProblem} `FIELDS_INVALID` with every invalid field of every part.
 */
export function validateInput(schemas: InputSchemas, raw: RawInput): ValidInput {
  const problems: FieldProblem[] = [];
  const parse = (part: keyof InputSchemas): unknown => {
    const schema = schemas[part];
    if (schema === undefined) {
      // A query where none is read: most likely a field of the body that went to the wrong place.
      if (part === "query") for (const name of Object.keys(raw.query)) problems.push(unknownParameter(name));
      return part === "body" ? undefined : EMPTY;
    }
    const parsed = parseFields(schema, raw[part]);
    if ("data" in parsed) return parsed.data;
    for (const issue of parsed.issues) problems.push(fieldProblem(part, issue));
    return undefined;
  };
  const input = { params: parse("params"), query: parse("query"), body: parse("body") };
  if (problems.length > 0) throw fieldsInvalid(problems);
  return input;
}

/** The problem that names invalid fields. */
export function fieldsInvalid(problems: readonly FieldProblem[]): HttpProblem {
  const shown = problems.slice(0, MAX_FIELD_PROBLEMS);
  const names = shown.map(({ field }) => field).join(", ");
  return new HttpProblem("FIELDS_INVALID", {
    detail: `${problems.length === 1 ? "This field is" : "These fields are"} not valid: ${names}.`,
    members: { errors: shown },
  });
}

const EMPTY = Object.freeze({});

/** `body.version`. */
function fieldProblem(part: string, { field, message }: FieldIssue): FieldProblem {
  return { field: field === "" ? part : `${part}.${field}`, message };
}

function unknownParameter(name: string): FieldProblem {
  return { field: `query.${name.slice(0, 100)}`, message: "unknown field" };
}
