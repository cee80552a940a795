import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { TERMINAL_ATTEMPT_STATES } from "../vocabulary.ts";

/**
 * What the counters of rollouts learn from attempts that have moved, as the last part of the statement that moves them:
 * nothing is counted that did not happen. A rollout without counters has no row, and nothing is written for it.
 *
 * `moved` is a part of the same statement with a row for each attempt: `rollout_id`, `from_state` and `to_state`. Rows
 * where both are equal count for nothing. Where they are of several rollouts, the counters' rows must have been locked in
 * the order of their ids before.
 *
 * An attempt that closes gives its place back, if it has been counted: a process of a version that counts nothing may have
 * opened it, and what its device says at the end must be stored all the same. Failures and timeouts count alike; a late
 * success takes its timeout back.
 * The outcome that reaches a threshold says so in the row, and no place is given from this commit on; the rollout itself
 * is paused by a later transaction, which has to lock the product first.
 */
export function countTransitions(moved: SQLWrapper): SQL {
  return sql`
    update rollout_counters set
      live = greatest(live - moves.closed, 0),
      succeeded = succeeded + moves.successes,
      failed = failed + moves.failures,
      reached = coalesce(reached, ${THRESHOLD}),
      reached_at = case when reached is null and ${THRESHOLD} is not null then now() else reached_at end
    from (
      select
        rollout_id,
        (count(*) filter (where from_state not in (${OVER}) and to_state in (${OVER})))::integer as closed,
        (count(*) filter (where to_state = 'succeeded'))::integer as successes,
        (
          count(*) filter (where to_state in ('failed', 'timed_out'))
          - count(*) filter (where from_state = 'timed_out' and to_state = 'succeeded')
        )::integer as failures
      from ${moved}
      where from_state <> to_state
      group by rollout_id
    ) moves
    join rollouts on rollouts.id = moves.rollout_id
    where rollout_counters.rollout_id = moves.rollout_id
      and (moves.closed <> 0 or moves.successes <> 0 or moves.failures <> 0)
  `;
}

const OVER = sql.raw(TERMINAL_ATTEMPT_STATES.map((state) => `'${state}'`).join(", "));

/** What has come in since the rollout was started, was resumed or came to its phase, this time's moves among it. */
const SUCCEEDED = sql`(succeeded + moves.successes - succeeded_before)`;
const FAILED = sql`(failed + moves.failures - failed_before)`;

/** The threshold that the outcomes have reached, or null. Failures come first: they are the more urgent reason. */
const THRESHOLD = sql`case
  when ${FAILED} > 0
    and ${FAILED} + ${SUCCEEDED} >= rollouts.error_threshold_min_outcomes
    and ${FAILED}::bigint * 10000 >= rollouts.error_threshold_basis_points::bigint * (${FAILED} + ${SUCCEEDED})
    then 'error_threshold'
  when ${SUCCEEDED} >= rollouts.success_threshold then 'success_threshold'
end`;
