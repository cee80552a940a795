import { z } from "zod";

/** One environment variable: how it is read and what its page says. */
export interface Variable {
  readonly group: VariableGroup;
  /** What it does, in a sentence or two for the reference. */
  readonly about: string;
  /** What is accepted, as a phrase that completes "must be …". */
  readonly accepts: string;
  /** Reads the text of a variable that is set and not empty. Its own messages are not shown: `accepts` is. */
  readonly schema: z.ZodType;
  /** What applies where it is not set, as text in the form of the variable; absent: there is no value. */
  readonly default?: string;
  /** What applies where it is not set, in words, where that is no fixed text. */
  readonly defaultText?: string;
  /** Whether the value must never be shown. */
  readonly secret?: boolean;
}

export const VARIABLE_GROUPS = ["HTTP", "Storage", "Locks", "Security", "Limits", "Operation"] as const;
export type VariableGroup = (typeof VARIABLE_GROUPS)[number];

/** Keeps the type of each definition, so that a value is known to be there where it has a default. */
export function variable<const Definition extends Variable>(definition: Definition): Definition {
  return definition;
}

/** A whole number in decimal digits. */
export function integer({ min, max }: { readonly min: number; readonly max: number }) {
  return {
    accepts: `an integer from ${min} to ${max}`,
    schema: z
      .string()
      .regex(/^\d{1,16}$/)
      .transform(Number)
      .pipe(z.int().min(min).max(max)),
  };
}

/** One word of a few. */
export function oneOf<const Choice extends string>(choices: readonly [Choice, ...Choice[]]) {
  return { accepts: `one of ${choices.join(", ")}`, schema: z.enum(choices) };
}

/** A folder, which need not be there. */
export function path() {
  return {
    accepts: "the path of a folder",
    schema: z.string().refine((text) => !text.includes("\0")),
  };
}

/** Keys separated by commas, each as {@link decodeKey} reads it. */
export function decodeKeys(text: string, context: z.RefinementCtx<string>): Buffer[] {
  return text.split(",").map((part) => decodeKey(part.trim(), context));
}

/** base64 (of any alphabet) or hexadecimal. Hexadecimal is tried first: its text is base64 as well, of other bytes. */
export function decodeKey(text: string, context: z.RefinementCtx<string>): Buffer {
  const key = /^([0-9a-fA-F]{2})+$/.test(text) ? Buffer.from(text, "hex") : Buffer.from(text, "base64");
  if (/^[A-Za-z0-9+/_=-]+$/.test(text) && key.length >= 32) return key;
  context.addIssue("not a key");
  return z.NEVER;
}
