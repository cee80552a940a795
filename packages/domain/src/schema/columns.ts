import { type SQL, sql } from "drizzle-orm";
import { type AnyPgColumn, bigint, customType, timestamp } from "drizzle-orm/pg-core";

/** An internal key. It is a `bigint` in TypeScript, which JSON refuses: an internal id cannot leak into an answer. */
export const internalId = (name: string) => bigint(name, { mode: "bigint" }).generatedAlwaysAsIdentity();

/** A reference to an internal key. */
export const internalRef = (name: string) => bigint(name, { mode: "bigint" });

/** A moment, to the millisecond: what JavaScript's `Date` holds, so that a value read and written back is the same. */
export const moment = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: "date" });

/** A SHA-256 in 32 bytes. */
export const bytes = customType<{ data: Buffer; driverData: Uint8Array }>({
  dataType: () => "bytea",
  // postgres.js gives a Buffer, PGlite a plain Uint8Array.
  fromDriver: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength),
});

/** `column in ('a', 'b')` for CHECK constraints and partial indexes, from a tuple of the vocabulary. */
export function oneOf(column: AnyPgColumn, values: readonly string[]): SQL {
  return sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(", "))})`;
}
