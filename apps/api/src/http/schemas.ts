import { LINE_PROBLEM_CODES, MAX_ATTRIBUTES } from "@ota/domain";
import { z } from "zod";
import { PROBLEMS, type ProblemCode } from "./problems.ts";

/**
 * Text that every part of the service can keep: at most `maxLength` UTF-16 units, without NUL (PostgreSQL refuses it) and
 * without half a surrogate pair (jsonb refuses it).
 */
export function plainText(maxLength: number): z.ZodString {
  return z
    .string()
    .max(maxLength)
    .refine((text) => !text.includes("\0") && text.isWellFormed(), "holds a NUL character or half a surrogate pair");
}

/** A serial as the native API takes it: it goes into paths, logs and file names as it is. */
export const serialSchema: z.ZodString = z
  .string()
  .regex(/^[A-Za-z0-9._:~-]{1,256}$/, "1 to 256 of the characters A-Z a-z 0-9 . _ : ~ -");

/** The value of an attribute. */
export const attributeValueSchema = z.union([plainText(256), z.number(), z.boolean()]);

/** Changes of a device's attributes. */
export const attributeChangesSchema = z
  .record(plainText(128).min(1), attributeValueSchema.nullable())
  .refine((changes) => Object.keys(changes).length <= MAX_ATTRIBUTES, `at most ${MAX_ATTRIBUTES} attributes`)
  .meta({
    description: "By name, which starts with a letter or digit and has no `=`. null removes one; the others stay.",
    example: { modem: "4.2.1" },
  });

/** What a PATCH is to name: anything. Where the changes are not valid for another reason, that alone is told. */
export const SOME_CHANGE: {
  readonly error: string;
  readonly when: (payload: z.core.ParsePayload) => boolean;
} = { error: "names nothing to change", when: ({ issues }) => issues.length === 0 };

/** A public id (UUID version 7). */
export const publicIdSchema: z.ZodUUID = z.uuid();

/** An attempt's id: a positive int32, which device clients read as a C int. */
export const attemptIdSchema: z.ZodInt = z.int().min(1).max(2_147_483_647);

/** An attempt's id within a path: digits alone, no sign, no exponent. */
export const attemptIdParamSchema = z
  .string()
  .regex(/^[1-9]\d{0,9}$/, "a positive integer")
  .transform(Number)
  .pipe(attemptIdSchema);

/** The slug that names a product. */
export const productNameSchema: z.ZodString = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "1 to 63 of the characters a-z 0-9 -, the first one not -");

/** A time in JSON: ISO 8601 in UTC. */
export const timeSchema: z.ZodISODateTime = z.iso.datetime();

/** An error document as RFC 9457 has it, with our members. */
export const problemSchema = z
  .looseObject({
    type: z.string().meta({ description: "Where the problem is described, relative to the service." }),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]).meta({ description: "Stable: rely on it." }),
    detail: z.string().meta({ description: "What happened and what to do, for people." }),
    requestId: z.string().meta({ description: "Quote it when you ask the operators of the service." }),
    errors: z
      .array(
        z.object({
          line: z.int().optional().meta({ description: "With LINES_INVALID." }),
          field: z.string().nullable().meta({ description: "null: the line as a whole." }),
          code: z.enum(LINE_PROBLEM_CODES).optional().meta({ description: "With LINES_INVALID. Stable: rely on it." }),
          message: z.string(),
        }),
      )
      .optional()
      .meta({
        description: "The invalid fields, with FIELDS_INVALID; what is wrong with the lines, with LINES_INVALID.",
      }),
    errorsTotal: z
      .int()
      .optional()
      .meta({ description: "How many errors there are, with LINES_INVALID: only the first 1 000 are told." }),
  })
  .meta({ id: "Problem" });
