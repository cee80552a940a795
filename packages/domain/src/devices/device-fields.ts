import { OtaError } from "../errors.ts";
import { invalidField, requirePattern, requireText } from "../fields.ts";
import type { DeviceAttributes } from "../schema/devices.ts";

/** A value that an attribute can have. */
export type AttributeValue = DeviceAttributes[string];

/** Changes of attributes: what is named gets the value, or goes where that is `null`; the rest stays. */
export type AttributeChanges = Readonly<Record<string, AttributeValue | null>>;

/** Rollouts aim at a handful of groups and attributes; the check reads them all, so that they have to stay small. */
export const MAX_GROUPS = 64;
export const MAX_ATTRIBUTES = 64;
const MAX_ATTRIBUTE_NAME = 128;
const MAX_ATTRIBUTE_TEXT = 256;

/** What a serial is made of: it goes into paths, logs and file names as it is. */
export const SERIAL = {
  pattern: /^[A-Za-z0-9._:~-]{1,256}$/,
  expected: "1 to 256 of the characters A-Z a-z 0-9 . _ : ~ -",
};

/** Refuses what is no serial. */
export function requireSerial(field: string, serial: string): void {
  requirePattern(field, serial, SERIAL);
}

/** Refuses names of groups that are none, too many, or named twice. */
export function requireGroups(field: string, groups: readonly string[]): void {
  for (const group of groups) requireGroup(field, group);
  if (groups.length > MAX_GROUPS || new Set(groups).size < groups.length) {
    invalidField(field, `at most ${MAX_GROUPS} names, each once`);
  }
}

/** Refuses what is no name of a group: lists of them are written with `;` in a table's cell. */
export function requireGroup(field: string, group: string): void {
  requirePattern(field, group, {
    pattern: /^[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$/,
    expected: "names of 1 to 63 of the characters A-Z a-z 0-9 . _ : -, the first one a letter or digit",
  });
}

/** Refuses attributes, or changes of them, that cannot be kept. `null` is taken: it removes. */
export function requireAttributes(field: string, attributes: AttributeChanges): void {
  const entries = Object.entries(attributes);
  if (entries.length > MAX_ATTRIBUTES) invalidField(field, `at most ${MAX_ATTRIBUTES} attributes`);
  for (const [name, value] of entries) {
    requireAttributeName(field, name);
    if (typeof value === "number" && !Number.isFinite(value)) invalidField(field, "finite where they are numbers");
    if (typeof value !== "string" || value === "") continue;
    requireText(field, value, { maxLength: MAX_ATTRIBUTE_TEXT });
  }
}

/** Refuses what is no attribute's name: in a query it stands before the first `=`. */
export function requireAttributeName(field: string, name: string): void {
  requireText(field, name, { maxLength: MAX_ATTRIBUTE_NAME });
  requirePattern(field, name, {
    pattern: /^[\p{L}\p{N}][^=]*$/u,
    expected: "attributes by names that start with a letter or digit and have no =",
  });
}

/** The attributes after the changes. Throws INVALID_FIELD where they have become too many. */
export function changedAttributes(
  field: string,
  { attributes, changes }: { readonly attributes: DeviceAttributes; readonly changes: AttributeChanges },
): DeviceAttributes {
  const merged = Object.entries({ ...attributes, ...changes }).filter(isKept);
  if (merged.length > MAX_ATTRIBUTES) {
    const expected = `at most ${MAX_ATTRIBUTES} attributes with those it has`;
    throw new OtaError("INVALID_FIELD", `${field} must be ${expected}.`, {
      details: { field, expected, maxAttributes: MAX_ATTRIBUTES },
    });
  }
  return Object.fromEntries(merged);
}

function isKept(entry: readonly [string, AttributeValue | null]): entry is [string, AttributeValue] {
  return entry[1] !== null;
}

/** Refuses what is no IANA time zone that this Node knows. */
export function requireTimeZone(field: string, timeZone: string): void {
  requireText(field, timeZone, { maxLength: 64 });
  // An offset such as +02:00 is a time zone to Intl, and no place with rules of its own.
  if (/^[A-Za-z]/.test(timeZone) && isKnownTimeZone(timeZone)) return;
  invalidField(field, "the IANA name of a time zone, such as Europe/Berlin");
}

function isKnownTimeZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/**
 * Refuses a token from elsewhere that could be guessed, since it is stored as a plain hash: 22 characters are 128 bits in
 * base64url.
 */
export function requireToken(field: string, token: string): void {
  requirePattern(field, token, {
    pattern: /^[!-~]{22,256}$/,
    expected: "22 to 256 printable ASCII characters without spaces, drawn at random",
  });
}

/** Refuses a reason that is given for a device that is not blocked. */
export function requireBlockedReason(
  field: string,
  { reason, blocked }: { readonly reason: string | null; readonly blocked: boolean },
): void {
  if (reason === null) return;
  requireText(field, reason, { maxLength: 256 });
  if (!blocked)
    throw new OtaError("INVALID_FIELD", `${field} goes with a device that is blocked.`, { details: { field } });
}
