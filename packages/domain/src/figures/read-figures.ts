import { and, eq, inArray, not, type SQL, type SQLWrapper, sql } from "drizzle-orm";
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

/** What the limit has left off a ranked list. */
export interface LeftOff {
  /** How many entries. */
  readonly entries: number;
  /** What these count together. */
  readonly count: number;
}

/** A count that is kept, under its key as the database's triggers have written it. */
export interface Figure {
  readonly kind: FigureKind;
  readonly key: string;
  readonly count: number;
}

/** Figures of one moment. */
export interface ReadFigures {
  /** Of the kinds that have few of them. */
  readonly all: readonly Figure[];
  /** The greatest of the ranked kind, the greatest first; of equal ones in the order of their keys. */
  readonly greatest: readonly Figure[];
  readonly leftOff: LeftOff;
}

/**
 * What was folded, and what was not yet, summed in one statement and so of one moment. Figures of 0 are left out. There
 * may be any number of different figures of the ranked kind, since devices word them: they are ranked where they are.
 */
export async function readFigures(
  db: Database,
  wanted: {
    readonly owner: (ownerId: SQLWrapper) => SQL;
    readonly kinds: readonly FigureKind[];
    readonly ranked: FigureKind;
    readonly limit: number;
  },
): Promise<ReadFigures> {
  const { ranked, limit } = wanted;
  const of = (table: typeof figures | typeof figureDeltas) =>
    and(inArray(table.kind, [...wanted.kinds, ranked]), wanted.owner(table.ownerId));
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
  const summed = db.$with("summed").as(
    db
      .select({ kind: both.kind, key: both.key, count: sql`${sum}::bigint`.mapWith(Number).as("count") })
      .from(both)
      .groupBy(both.kind, both.key)
      .having(sql`${sum} <> 0`),
  );
  const isRanked = eq(summed.kind, ranked);
  const first = db.$with("first").as(
    db
      .select()
      .from(summed)
      .where(isRanked)
      .orderBy(...ranking(summed))
      .limit(limit),
  );
  const whole = db.$with("whole").as(
    db
      .select({
        entries: sql`count(*)`.mapWith(Number).as("entries"),
        total: sql`sum(${summed.count})`.mapWith(Number).as("total"),
      })
      .from(summed)
      .where(isRanked),
  );
  const listed = unionAll(db.select().from(first), db.select().from(summed).where(not(isRanked))).as("listed");
  const rows = await db
    .with(summed, first, whole)
    .select({ ...listed._.selectedFields, entries: whole.entries, total: whole.total })
    .from(listed)
    .crossJoin(whole)
    .orderBy(...ranking(listed));
  const greatest = rows.filter(({ kind }) => kind === ranked);
  const { entries = 0, total = 0 } = greatest[0] ?? {};
  return {
    all: rows.filter(({ kind }) => kind !== ranked),
    greatest,
    leftOff: { entries: entries - greatest.length, count: total - greatest.reduce((n, { count }) => n + count, 0) },
  };
}

/** The same order in every database, whatever its collation. */
function ranking({ count, key }: { readonly count: SQLWrapper; readonly key: SQLWrapper }) {
  return [sql`${count} desc`, sql`${key} collate "C"`];
}

/** Throws INVALID_FIELD. */
export function requireLimit({ limit = 20 }: FiguresRequest): number {
  requireInteger("limit", limit, { least: 1, most: 200 });
  return limit;
}
