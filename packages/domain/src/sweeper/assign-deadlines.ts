import { sql } from "drizzle-orm";
import { deadlineOf } from "../attempts/deadline.ts";
import { oneOf } from "../schema/columns.ts";
import { upgradeAttempts } from "../schema/index.ts";
import { LIVE_ATTEMPT_STATES } from "../vocabulary.ts";
import type { BackgroundJob } from "./background-job.ts";

const BATCH = 500;

/**
 * Gives a deadline to open attempts that have none: those that were opened before there were deadlines, by a version that
 * sets none, or while their state had no timeout. It goes round, so that attempts which still have none are looked at
 * again later without being in the way of others.
 */
export function assignDeadlines({ intervalMs }: { readonly intervalMs: number }): BackgroundJob {
  return {
    name: "assign-deadlines",
    intervalMs,
    async runBatch({ tx, position }) {
      const afterId = afterIdOf(position);
      const deadline = deadlineOf({ rolloutId: sql`upgrade_attempts.rollout_id`, state: sql`upgrade_attempts.state` });
      // In the order of the index on deadlines: by the id alone, all attempts that are over would be passed as well.
      // Nothing but attempts is locked, by id: whoever waits for one of them holds none of the others.
      const seen = tx.$with("seen", { id: upgradeAttempts.id }).as(sql`
        select id, ${deadline} as deadline_at from upgrade_attempts
        where ${oneOf(upgradeAttempts.state, LIVE_ATTEMPT_STATES)} and deadline_at is null and id > ${afterId}::integer
        order by upgrade_attempts.deadline_at, id limit ${sql.raw(String(BATCH))}
        for update skip locked
      `);
      const given = tx.$with("given", {}).as(sql`
        update upgrade_attempts set deadline_at = ${deadline}
        where id = any (array(select id from seen where deadline_at is not null))
        returning upgrade_attempts.id
      `);
      const [row] = await tx
        .with(seen, given)
        .select({
          seen: sql<number>`count(*)::integer`,
          rows: sql<number>`(select count(*)::integer from given)`,
          lastId: sql<number | null>`max(id)`,
        })
        .from(seen);
      const { seen: count = 0, rows = 0, lastId = null } = row ?? {};
      const full = count === BATCH;
      return { more: full && rows > 0, rows, position: { afterId: full ? lastId : 0 } };
    },
  };
}

function afterIdOf(position: unknown): number {
  const { afterId = 0 } = (position ?? {}) as { readonly afterId?: number };
  return afterId;
}
