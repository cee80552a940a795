import { type SQL, sql } from "drizzle-orm";
import { type AnyPgColumn, bigint, customType, jsonb, timestamp } from "drizzle-orm/pg-core";
import type { LiveAttemptState } from "../vocabulary.ts";

/** An internal key. It is a `bigint` in TypeScript, which JSON refuses: an internal id cannot leak into an answer. */
export const internalId = (name: string) => bigint(name, { mode: "bigint" }).generatedAlwaysAsIdentity();

/** A reference to an internal key. */
export const internalRef = (name: string) => bigint(name, { mode: "bigint" });

/** A moment, to the millisecond: what JavaScript's `Date` holds, so that a value read and written back is the same. */
export const moment = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: "date" });

/** Bytes of a fixed length: a SHA-256, a key, a signature. */
export const bytes = customType<{ data: Buffer; driverData: Uint8Array }>({
  dataType: () => "bytea",
  // postgres.js gives a Buffer, PGlite a plain Uint8Array.
  fromDriver: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength),
});

/**
 * After how many seconds of silence an attempt in a live state is ended: `null` is never, and a state that is left out is
 * as the next wider place says (rollout, product, the service's own defaults).
 */
export type SilenceTimeouts = Readonly<Partial<Record<LiveAttemptState, number | null>>>;

/** Timeouts by live state. */
export const silenceTimeouts = (name: string) => jsonb(name).$type<SilenceTimeouts>();

/** `column in ('a', 'b')` for CHECK constraints and partial indexes, from a tuple of the vocabulary. */
export function oneOf(column: AnyPgColumn, values: readonly string[]): SQL {
  return sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(", "))})`;
}
