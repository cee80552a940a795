import { and, asc, isNotNull, sql } from "drizzle-orm";
import { isAnyOf } from "../id-list.ts";
import { attemptEvents, upgradeAttempts } from "../schema/index.ts";
import type { BackgroundJob } from "./background-job.ts";

/** Attempts whose history one transaction looks at, and the events that it deletes at the most. */
const ATTEMPTS = 200;
const EVENTS = 2_000;

/**
 * Deletes the history of attempts that ended so many days ago. The attempts themselves stay, and with them what decides
 * and what is counted. It walks in the order in which they ended, so that each one is looked at once, and takes few rows
 * at a time, which nobody else writes: no check and no report waits for it.
 */
export function deleteOldEvents(options: { readonly intervalMs: number; readonly afterDays: number }): BackgroundJob {
  const { intervalMs, afterDays } = options;
  return {
    name: "delete-old-events",
    intervalMs,
    async runBatch({ tx, position }) {
      const { closedAt, id } = { ...START, ...(position as Partial<Position> | null) };
      const attempts = await tx
        .select({ id: upgradeAttempts.id, closedAt: upgradeAttempts.closedAt })
        .from(upgradeAttempts)
        .where(
          and(
            // Says to the planner that the partial index on it has all that is wanted.
            isNotNull(upgradeAttempts.closedAt),
            sql`(${upgradeAttempts.closedAt}, ${upgradeAttempts.id}) > (${closedAt}::timestamptz, ${id}::integer)`,
            sql`${upgradeAttempts.closedAt} < now() - make_interval(days => ${afterDays}::integer)`,
          ),
        )
        .orderBy(asc(upgradeAttempts.closedAt), asc(upgradeAttempts.id))
        .limit(ATTEMPTS);
      const last = attempts.at(-1);
      if (last === undefined) return { more: false, rows: 0 };

      const deleted = tx.$with("deleted", {}).as(sql`
        delete from attempt_events where ctid = any (array(
          select ctid from attempt_events
          where ${isAnyOf(
            attemptEvents.attemptId,
            attempts.map((attempt) => attempt.id),
          )}
          order by attempt_id, seq limit ${sql.raw(String(EVENTS))} for update skip locked
        )) returning 1
      `);
      const [row] = await tx.with(deleted).select({ rows: sql<number>`count(*)::integer` }).from(sql`deleted`);
      const { rows = 0 } = row ?? {};
      if (rows === EVENTS) return { more: true, rows };
      const next: Position = { closedAt: last.closedAt?.toISOString() ?? START.closedAt, id: last.id };
      return { more: attempts.length === ATTEMPTS, rows, position: next };
    },
  };
}

interface Position {
  /** ISO 8601, to the millisecond as the column is. */
  readonly closedAt: string;
  readonly id: number;
}

const START: Position = { closedAt: "-infinity", id: 0 };
