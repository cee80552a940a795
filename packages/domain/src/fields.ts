import { OtaError } from "./errors.ts";

/** A hardware revision, a version or a name is a word or two; this is far above any real one. */
export const MAX_TEXT_LENGTH = 128;

const CONTROL_CHARACTER = /\p{Cc}/u;

/** Throws INVALID_FIELD: names the field and says what would be accepted. The value itself is not repeated. */
export function invalidField(field: string, expected: string): never {
  throw new OtaError("INVALID_FIELD", `${field} must be ${expected}.`, { details: { field, expected } });
}

/**
 * Refuses text that the database cannot hold (NUL, half a surrogate pair), other control characters, and text that is
 * empty or longer than `maxLength` UTF-16 units.
 */
export function requireText(field: string, value: string, options?: { readonly maxLength?: number }): void {
  const maxLength = options?.maxLength ?? MAX_TEXT_LENGTH;
  const valid = value.length > 0 && value.length <= maxLength && value.isWellFormed() && !CONTROL_CHARACTER.test(value);
  if (!valid) invalidField(field, `1 to ${maxLength} characters of well-formed text without control characters`);
}

/** Refuses what does not match. `expected` describes the pattern in words. */
export function requirePattern(
  field: string,
  value: string,
  options: { readonly pattern: RegExp; readonly expected: string },
): void {
  if (!options.pattern.test(value)) invalidField(field, options.expected);
}

/** Refuses what is not an integer from `least` to `most`. */
export function requireInteger(
  field: string,
  value: number,
  options: { readonly least: number; readonly most: number },
): void {
  const { least, most } = options;
  if (!Number.isInteger(value) || value < least || value > most) {
    invalidField(field, `an integer from ${least} to ${most}`);
  }
}

/** Refuses what is none of `values`. */
export function requireOneOf(field: string, value: string, values: readonly string[]): void {
  if (!values.includes(value)) invalidField(field, `one of ${values.join(", ")}`);
}

/** Refuses what is no name of a channel: a channel is part of URLs, logs and metrics. */
export function requireChannel(field: string, value: string): void {
  requirePattern(field, value, {
    pattern: /^[a-z0-9][a-z0-9._-]{0,62}$/,
    expected: "1 to 63 of the characters a-z 0-9 . _ -, the first one a letter or digit",
  });
}
