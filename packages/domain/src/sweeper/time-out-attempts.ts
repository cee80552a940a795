import { and, asc, lte, sql } from "drizzle-orm";
import { recordTimeouts, type SilentAttempt } from "../attempts/record-timeouts.ts";
import type { CheckObserver } from "../check/events.ts";
import type { Database } from "../database.ts";
import { isAnyOf } from "../id-list.ts";
import { lockCounters } from "../rollouts/places.ts";
import { oneOf } from "../schema/columns.ts";
import { devices, upgradeAttempts } from "../schema/index.ts";
import { LIVE_ATTEMPT_STATES, type LiveAttemptState } from "../vocabulary.ts";
import type { BackgroundJob } from "./background-job.ts";

/** Rows of one transaction: a check of one of these devices waits for it. */
const BATCH = 200;

/**
 * Ends attempts whose devices have been silent past their deadline: they count as failures and free their places. Rows
 * that somebody else has locked are left for the next run: most likely that is the device itself, saying something.
 */
export function timeOutAttempts(options: {
  readonly intervalMs: number;
  /** @default nobody looks on */
  readonly observe?: CheckObserver | undefined;
}): BackgroundJob {
  const { intervalMs, observe = () => {} } = options;
  return {
    name: "time-out-attempts",
    intervalMs,
    async runBatch({ tx, fence }) {
      const due = await dueAttempts(tx);
      const attempts = await lockDue(tx, due);
      const rows = attempts.length === 0 ? 0 : await recordTimeouts(tx, { attempts, fence });
      return {
        more: due.length === BATCH && rows > 0,
        rows,
        committed() {
          for (let row = 0; row < rows; row += 1) observe({ kind: "moved", to: "timed_out" });
        },
      };
    },
  };
}

/** As the partial index on deadlines is written, so that it is used: a parameter would not be seen to imply it. */
const isLive = oneOf(upgradeAttempts.state, LIVE_ATTEMPT_STATES);
const isDue = and(isLive, lte(upgradeAttempts.deadlineAt, sql`now()`));

interface DueAttempt {
  readonly id: number;
  readonly deviceId: bigint;
}

/** Those that have been due for longest, not locked. */
async function dueAttempts(tx: Database): Promise<DueAttempt[]> {
  return tx
    .select({ id: upgradeAttempts.id, deviceId: upgradeAttempts.deviceId })
    .from(upgradeAttempts)
    .where(isDue)
    .orderBy(asc(upgradeAttempts.deadlineAt), asc(upgradeAttempts.id))
    .limit(BATCH);
}

/** Locks in the order of all transactions: devices, attempts, counters, each by id. Gives the attempts that are due then. */
async function lockDue(tx: Database, due: readonly DueAttempt[]): Promise<readonly SilentAttempt[]> {
  if (due.length === 0) return [];
  const locked = await tx
    .select({ id: devices.id })
    .from(devices)
    .where(
      isAnyOf(
        devices.id,
        due.map(({ deviceId }) => deviceId),
      ),
    )
    .orderBy(asc(devices.id))
    .for("update", { skipLocked: true });
  // A statement of its own: what is read with the lock may be older than the lock.
  const attempts = await tx
    .select({ id: upgradeAttempts.id, state: upgradeAttempts.state, rolloutId: upgradeAttempts.rolloutId })
    .from(upgradeAttempts)
    .where(
      and(
        isAnyOf(
          upgradeAttempts.id,
          due.map(({ id }) => id),
        ),
        isAnyOf(
          upgradeAttempts.deviceId,
          locked.map(({ id }) => id),
        ),
        isDue,
      ),
    )
    .orderBy(asc(upgradeAttempts.id))
    .for("update", { skipLocked: true });
  if (attempts.length > 0) await lockCounters(tx, [...new Set(attempts.map(({ rolloutId }) => rolloutId))]);
  return attempts.map(({ id, state }) => ({ id, state: state as LiveAttemptState }));
}
