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
