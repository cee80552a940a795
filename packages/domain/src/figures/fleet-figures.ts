import { and, eq, inArray, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { unionAll } from "drizzle-orm/pg-core";
import { findProduct } from "../catalog/products.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireInteger } from "../fields.ts";
import { isPublicId } from "../public-id.ts";
import { figureDeltas, figures, firmware, rollouts } from "../schema/index.ts";
import { ATTEMPT_STATES, type AttemptState, type FigureKind } from "../vocabulary.ts";

/** How the attempts of a rollout, or of all of a product's, stand at this moment. */
export interface AttemptFigures {
  /** The attempts in each state, 0 included. They count attempts, of which a device may have several. */
  readonly attempts: Readonly<Record<AttemptState, number>>;
  /** Why attempts have failed or timed out, the most frequent reason first. */
  readonly failures: readonly FailureFigure[];
}

export interface FailureFigure {
  readonly state: "failed" | "timed_out";
  /** The device's own number; `null`: it gave none. */
  readonly code: number | null;
  /** The device's own words, with `#` in the place of digits; `null`: it said nothing. */
  readonly message: string | null;
  readonly count: number;
}

export interface ProductFigures extends AttemptFigures {
  readonly devices: number;
  /** What devices run as far as it is known, the most frequent version first. */
  readonly versions: readonly VersionFigure[];
}

export interface VersionFigure {
  /** As devices report it; `null`: of these nothing is known. */
  readonly version: string | null;
  readonly count: number;
}

/** How many entries of a ranked list are wanted. */
export interface FiguresRequest {
  /** 1 to 200. @default 20 */
  readonly limit?: number | undefined;
}

/**
 * The figures of a product's fleet. They are kept, not counted: the work grows with the number of different figures, never
 * with that of devices and attempts. Throws NOT_FOUND, and INVALID_FIELD on a bad limit.
 */
export async function productFigures(
  db: Database,
  input: FiguresRequest & { readonly product: string },
): Promise<ProductFigures> {
  const limit = requireLimit(input);
  const { id } = await findProduct(db, input.product);
  const rolloutIds = db
    .select({ id: rollouts.id })
    .from(rollouts)
    .innerJoin(firmware, eq(firmware.id, rollouts.firmwareId))
    .where(eq(firmware.productId, id));
  const versions = await read(db, { kinds: ["product_version"], owner: (ownerId) => eq(ownerId, id) });
  const attempts = await readAttempts(db, (ownerId) => inArray(ownerId, rolloutIds));
  return {
    devices: versions.reduce((sum, { count }) => sum + count, 0),
    versions: ranked(versions, limit).map(({ key, count }) => ({ version: key === "" ? null : key, count })),
    ...attemptFigures(attempts, limit),
  };
}

/** The figures of one rollout, kept in the same way. Throws NOT_FOUND, and INVALID_FIELD on a bad limit. */
export async function rolloutFigures(
  db: Database,
  input: FiguresRequest & { readonly rolloutId: string },
): Promise<AttemptFigures> {
  const limit = requireLimit(input);
  const [rollout] = isPublicId(input.rolloutId)
    ? await db.select({ id: rollouts.id }).from(rollouts).where(eq(rollouts.publicId, input.rolloutId))
    : [];
  if (rollout === undefined) throw new OtaError("NOT_FOUND", "There is no such rollout.");
  return attemptFigures(await readAttempts(db, (ownerId) => eq(ownerId, rollout.id)), limit);
}

interface Figure {
  readonly kind: FigureKind;
  readonly key: string;
  readonly count: number;
}

type OwnedBy = (ownerId: SQLWrapper) => SQL;

const readAttempts = (db: Database, owner: OwnedBy) => read(db, { kinds: ["rollout_state", "rollout_failure"], owner });

/** What was folded, and what was not yet, summed in one statement and so of one moment. */
async function read(
  db: Database,
  wanted: { readonly kinds: readonly FigureKind[]; readonly owner: OwnedBy },
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

function attemptFigures(found: readonly Figure[], limit: number): AttemptFigures {
  const states = new Map(found.filter(({ kind }) => kind === "rollout_state").map(({ key, count }) => [key, count]));
  const failures = found.filter(({ kind }) => kind === "rollout_failure");
  return {
    attempts: Object.fromEntries(ATTEMPT_STATES.map((state) => [state, states.get(state) ?? 0])) as Record<
      AttemptState,
      number
    >,
    failures: ranked(failures, limit).map(failureOf),
  };
}

/** `state:code:message`, as the database's trigger has written it. */
function failureOf({ key, count }: Figure): FailureFigure {
  const [, state, code, message] = /^(failed|timed_out):(-?\d*):(.*)$/s.exec(key) ?? [];
  return {
    state: state as FailureFigure["state"],
    code: code === "" ? null : Number(code),
    message: message === "" || message === undefined ? null : message,
    count,
  };
}

function ranked(found: readonly Figure[], limit: number): Figure[] {
  return found.toSorted((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1)).slice(0, limit);
}

function requireLimit({ limit = 20 }: FiguresRequest): number {
  requireInteger("limit", limit, { least: 1, most: 200 });
  return limit;
}
