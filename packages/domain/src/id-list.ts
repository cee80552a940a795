import { type SQL, sql } from "drizzle-orm";
import type { AnyPgColumn } from "drizzle-orm/pg-core";

/** `column = any($1)`: the same text for a list of any length, so that the driver prepares the statement once. */
export function isAnyOf(column: AnyPgColumn, ids: readonly (bigint | number)[]): SQL {
  return sql`${column} = any(${`{${ids.join(",")}}`}::bigint[])`;
}

/** The same for public ids. Each must have the form of one: PostgreSQL refuses any other. */
export function isAnyPublicId(column: AnyPgColumn, ids: readonly string[]): SQL {
  return sql`${column} = any(${`{${ids.join(",")}}`}::uuid[])`;
}

/** A list of byte strings as PostgreSQL reads it, whatever the driver would make of an array. */
export function bytesList(list: readonly Uint8Array[]): string {
  return `{${list.map((bytes) => `"\\\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}"`).join(",")}}`;
}

/** The same of texts. */
export function textList(list: readonly string[]): string {
  return `{${list.map((text) => `"${text.replaceAll(/["\\]/g, "\\$&")}"`).join(",")}}`;
}
