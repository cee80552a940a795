import { eq, type SQL, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { upgradeAttempts } from "../schema/index.ts";
import type { AttemptState, LiveAttemptState } from "../vocabulary.ts";

const HOUR = 3_600;
const DAY = 24 * HOUR;

/**
 * After how many seconds of silence an attempt is ended, where neither rollout nor product says: any report of the device
 * begins them anew. A device may be switched off for a weekend before it takes up an offer, and a person takes longer to
 * answer; once it has begun, a day without a word means that it is gone.
 */
export const DEFAULT_TIMEOUTS_SECONDS: Readonly<Record<LiveAttemptState, number>> = {
  awaiting_confirmation: 30 * DAY,
  offered: 7 * DAY,
  downloading: DAY,
  downloaded: DAY,
  installing: DAY,
  installed: DAY,
  cancelling: DAY,
};

/**
 * When an attempt in a state is to be ended, by the database's clock: null for a closed one, and where it never is. The
 * statement that it is part of must have `rolloutId` at hand.
 */
export function deadlineOf({ rolloutId, state }: { readonly rolloutId: SQL; readonly state: SQL }): SQL {
  // A state that is named with null is one without a timeout: that is not the same as one that is not named.
  return sql`(
    select now() + make_interval(secs => case
      when jsonb_exists(rollouts.timeouts_seconds, ${state}) then (rollouts.timeouts_seconds ->> ${state})::float8
      when jsonb_exists(products.timeouts_seconds, ${state}) then (products.timeouts_seconds ->> ${state})::float8
      else (${DEFAULTS} ->> ${state})::float8
    end)
    from rollouts join firmware on firmware.id = rollouts.firmware_id join products on products.id = firmware.product_id
    where rollouts.id = ${rolloutId}
  )`;
}

/** Takes note that the device has said something, where there is nothing else to write. */
export async function extendDeadline(
  tx: Database,
  { attemptId, state }: { readonly attemptId: number; readonly state: AttemptState },
): Promise<void> {
  const deadlineAt = deadlineOf({ rolloutId: sql`upgrade_attempts.rollout_id`, state: sql`${state}::text` });
  await tx.update(upgradeAttempts).set({ deadlineAt }).where(eq(upgradeAttempts.id, attemptId));
}

const DEFAULTS = sql.raw(`'${JSON.stringify(DEFAULT_TIMEOUTS_SECONDS)}'::jsonb`);
