import { and, asc, desc, eq, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireInteger } from "../fields.ts";
import { DEFAULT_PAGE_LIMIT, type Page, type PageRequest, type PageWindow, pageOf, pageWindow } from "../pages.ts";
import { isPublicId } from "../public-id.ts";
import { attemptEvents, upgradeAttempts, upgrades } from "../schema/index.ts";
import type { AttemptState, ReportedState } from "../vocabulary.ts";

/** One entry of an attempt's history, in the order of receipt. */
export interface AttemptEvent {
  readonly seq: number;
  /** What the device said; `null`: the service itself moved the attempt. */
  readonly reportedState: ReportedState | null;
  /** `null` where the attempt was opened by it. */
  readonly fromState: AttemptState | null;
  /** Equal to `fromState` where the report was history only. */
  readonly toState: AttemptState;
  readonly reportedVersion: string | null;
  readonly progressPercent: number | null;
  readonly message: string | null;
  readonly details: readonly string[];
  readonly code: number | null;
  /** The device's own clock, which may be wrong. */
  readonly deviceTime: Date | null;
  readonly receivedAt: Date;
}

/** The end of an attempt's history. */
export interface NewestEvents {
  /** The last 50 events, oldest first. */
  readonly events: readonly AttemptEvent[];
  /** A cursor of {@link listAttemptEvents} that leads to those before them; `undefined`: there are none. */
  readonly earlierEvents: string | undefined;
}

/**
 * Lists an attempt's events, newest first. Throws NOT_FOUND where there is no such upgrade or no such attempt of it,
 * INVALID_FIELD and INVALID_CURSOR.
 */
export async function listAttemptEvents(
  db: Database,
  input: PageRequest & {
    readonly upgradeId: string;
    /** The attempt's number within the upgrade. */
    readonly number: number;
  },
): Promise<Page<AttemptEvent>> {
  const { upgradeId, number } = input;
  requireInteger("number", number, { least: 1, most: MAX_INT32 });
  const [attempt] = isPublicId(upgradeId)
    ? await db
        .select({ id: upgradeAttempts.id })
        .from(upgrades)
        .innerJoin(upgradeAttempts, eq(upgradeAttempts.upgradeId, upgrades.id))
        .where(and(eq(upgrades.publicId, upgradeId), eq(upgradeAttempts.n, number)))
    : [];
  if (attempt === undefined) throw new OtaError("NOT_FOUND", "There is no such attempt of such an upgrade.");
  const window = pageWindow(listOf(attempt.id), input);
  const rows = await db
    .select()
    .from(attemptEvents)
    .where(and(eq(attemptEvents.attemptId, attempt.id), sql`${attemptEvents.seq} < ${window.beforeId}::bigint`))
    .orderBy(desc(attemptEvents.seq))
    .limit(window.limit + 1);
  return pageOfEvents(window, rows);
}

/** As the column has it. */
const MAX_INT32 = 2 ** 31 - 1;

/** The newest events of each attempt of an upgrade, by the attempt's id. An attempt without any is not in it. */
export async function newestEvents(db: Database, upgradeRowId: bigint): Promise<ReadonlyMap<number, NewestEvents>> {
  const newest = db
    .select()
    .from(attemptEvents)
    .where(eq(attemptEvents.attemptId, upgradeAttempts.id))
    .orderBy(desc(attemptEvents.seq))
    .limit(DEFAULT_PAGE_LIMIT + 1)
    .as("newest");
  const rows = await db
    .select({ event: newest._.selectedFields })
    .from(upgradeAttempts)
    .innerJoinLateral(newest, sql`true`)
    .where(eq(upgradeAttempts.upgradeId, upgradeRowId))
    .orderBy(asc(newest.attemptId), desc(newest.seq));
  const byAttempt = Map.groupBy(rows, ({ event }) => event.attemptId);
  return new Map(
    [...byAttempt].map(([id, found]) => {
      const window = pageWindow(listOf(id), {});
      const { items, nextCursor } = pageOfEvents(
        window,
        found.map(({ event }) => event),
      );
      return [id, { events: items.toReversed(), earlierEvents: nextCursor }];
    }),
  );
}

/** Each attempt's events are a list of their own: a cursor leads into no other. */
function listOf(attemptId: number): string {
  return `events-${attemptId}`;
}

type EventRow = typeof attemptEvents.$inferSelect;

function pageOfEvents(window: PageWindow, rows: readonly EventRow[]): Page<AttemptEvent> {
  return pageOf(window, {
    rows,
    idOf: ({ seq }) => BigInt(seq),
    toItem: ({ attemptId: _, ...event }) => event,
  });
}
