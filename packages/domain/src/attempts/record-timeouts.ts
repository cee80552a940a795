import { sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { countTransitions } from "../rollouts/count-transitions.ts";
import { upgradeAttempts } from "../schema/index.ts";
import type { LiveAttemptState } from "../vocabulary.ts";
import { nextState } from "./transitions.ts";

/** An open attempt whose device has been silent for too long. */
export interface SilentAttempt {
  readonly id: number;
  readonly state: LiveAttemptState;
}

/**
 * Ends attempts for their silence, as one statement: their rows, an event for each, and the counters of their rollouts.
 * Gives how many have ended. One that is in another state by now stays as it is, and so does one that was written under a
 * greater fencing token.
 *
 * The rows of the devices, the attempts and the counters must have been locked before, in this order and by id.
 */
export async function recordTimeouts(
  tx: Database,
  { attempts, fence }: { readonly attempts: readonly SilentAttempt[]; readonly fence: bigint | undefined },
): Promise<number> {
  const ending = attempts.flatMap(({ id, state: from }) => {
    const next = nextState({ state: from, cancelOutcome: null, confirmBy: "report" }, "timeout");
    return next.effect === "moved" ? [{ id, from, to: next.state }] : [];
  });
  const list = (values: readonly (string | number)[]) => `{${values.join(",")}}`;
  const ids = list(ending.map(({ id }) => id));
  const from = list(ending.map(({ from }) => from));
  const to = list(ending.map(({ to }) => to));
  const moved = tx.$with("moved", { id: upgradeAttempts.id }).as(sql`
    update upgrade_attempts set
      state = given.to_state,
      cancel_outcome = nullif(cancel_outcome, 'superseded'),
      deadline_at = null,
      closed_at = now(),
      failure_code = null,
      failure_message = 'silent while ' || given.from_state,
      last_seq = last_seq + 1,
      ${fence === undefined ? sql`` : sql`fence = ${fence}::bigint,`}
      updated_at = now()
    from unnest(${ids}::integer[], ${from}::text[], ${to}::text[]) as given(id, from_state, to_state)
    where upgrade_attempts.id = given.id and upgrade_attempts.state = given.from_state
      ${fence === undefined ? sql`` : sql`and (fence is null or fence <= ${fence}::bigint)`}
    returning upgrade_attempts.id, upgrade_attempts.rollout_id, given.from_state, given.to_state, last_seq
  `);
  const noted = tx.$with("noted", {}).as(sql`
    insert into attempt_events (attempt_id, seq, from_state, to_state)
    select id, last_seq, from_state, to_state from moved
  `);
  const counted = tx.$with("counted", {}).as(countTransitions(sql`moved`));
  const rows = await tx.with(moved, noted, counted).select({ id: moved.id }).from(moved);
  return rows.length;
}
