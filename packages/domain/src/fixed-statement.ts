import { type SQL, sql } from "drizzle-orm";
import { PgDialect, type PreparedQueryConfig } from "drizzle-orm/pg-core";
import type { Database } from "./database.ts";

/** Runs a statement on a database or within a transaction. The values are those of its placeholders, by their names. */
export type FixedStatement<Row> = (db: Database, values: Readonly<Record<string, unknown>>) => Promise<readonly Row[]>;

const dialect = new PgDialect();

/**
 * A statement whose text is made once. The query builder makes it anew for each transaction, which takes longer than
 * sending it; what differs from run to run must be a placeholder.
 */
export function fixedStatement<Row>(statement: SQL, toRow: (values: readonly unknown[]) => Row): FixedStatement<Row> {
  const query = dialect.sqlToQuery(statement);
  const toRows = (rows: unknown[][]): readonly Row[] => rows.map(toRow);
  return (db, values) =>
    db._.session
      .prepareQuery<PreparedQueryConfig & { readonly execute: readonly Row[] }>(
        query,
        undefined,
        undefined,
        true,
        toRows,
      )
      .execute({ ...values });
}

/**
 * A piece of a statement with its text made once.
 *
 * @throws Error when the piece has parameters: they would be lost.
 */
export function fixedPiece<T>(piece: SQL<T>): SQL<T> {
  const { sql: text, params } = dialect.sqlToQuery(piece);
  if (params.length > 0) throw new Error("A piece of a statement whose text is made in advance has no parameters.");
  return sql.raw(text) as SQL<T>;
}
