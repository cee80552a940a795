import { and, inArray, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { unionAll } from "drizzle-orm/pg-core";
import type { Database } from "../database.ts";
import { requireInteger } from "../fields.ts";
import { figureDeltas, figures } from "../schema/index.ts";
import type { FigureKind } from "../vocabulary.ts";

/** How many entries of a ranked list are wanted. */
export interface FiguresRequest {
  /** 1 to 200. @default 20 */
  readonly limit?: number | undefined;
}

/** A count that is kept, under its key as the database's triggers have written it. */
export interface Figure {
  readonly kind: FigureKind;
  readonly key: string;
  readonly count: number;
}

/** What was folded, and what was not yet, summed in one statement and so of one moment. Figures of 0 are left out. */
export async function readFigures(
  db: Database,
  wanted: { readonly kinds: readonly FigureKind[]; readonly owner: (ownerId: SQLWrapper) => SQL },
): Promise<Figure[]> {
  const of = (table: typeof figures | typeof figureDeltas) =>
    and(inArray(table.kind, [...wanted.kinds]), wanted.owner(table.ownerId));
  const both = unionAll(
    db
      .select({ kind: figures.kind, key: figures.key, n: sql<number>`${figures.count}`.as("n") })
      .from(figures)
      .where(of(figures)),
    db
      .select({ kind: figureDeltas.kind, key: figureDeltas.key, n: sql<number>`${figureDeltas.delta}::bigint`.as("n") })
      .from(figureDeltas)
      .where(of(figureDeltas)),
  ).as("both");
  const sum = sql`sum(${both.n})`;
  return db
    .select({ kind: both.kind, key: both.key, count: sql`${sum}`.mapWith(Number) })
    .from(both)
    .groupBy(both.kind, both.key)
    .having(sql`${sum} <> 0`);
}

/** The greatest, in one order at any time. */
export function ranked(found: readonly Figure[], limit: number): Figure[] {
  return found.toSorted((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1)).slice(0, limit);
}

/** Throws INVALID_FIELD. */
export function requireLimit({ limit = 20 }: FiguresRequest): number {
  requireInteger("limit", limit, { least: 1, most: 200 });
  return limit;
}
