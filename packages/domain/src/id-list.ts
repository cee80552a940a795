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

/**
 * A list that is a placeholder, hidden from the planner by the `select`: seeing how long each is, it would make a new plan
 * for each run, which takes longer than the run.
 */
export function givenList(name: string, type: "bigint" | "boolean" | "bytea" | "integer" | "text" | "uuid"): SQL {
  return sql`(select ${sql.placeholder(name)}::${sql.raw(type)}[])`;
}

/** A value of a {@link givenList}. */
export type ListedValue = string | number | bigint | boolean | null;

/** Values for a {@link givenList}, as PostgreSQL reads them, whatever the driver would make of an array. */
export function textList(values: readonly ListedValue[]): string {
  return `{${values.map(textOf).join(",")}}`;
}

function textOf(value: ListedValue): string {
  return typeof value === "string" ? `"${value.replaceAll(/["\\]/g, "\\$&")}"` : String(value);
}

/** The same of byte strings. */
export function bytesList(values: readonly Uint8Array[]): string {
  return textList(
    values.map((bytes) => `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`),
  );
}
