import { sql } from "drizzle-orm";
import type { BackgroundJob } from "./background-job.ts";

/** Entries of one transaction. */
const BATCH = 1_000;

/**
 * Deletes audit entries that are older than so many days, the oldest first. Nothing else deletes any: the table refuses it
 * outside of a transaction that says what it is for.
 */
export function deleteOldAudit(options: { readonly intervalMs: number; readonly afterDays: number }): BackgroundJob {
  const { intervalMs, afterDays } = options;
  return {
    name: "delete-old-audit",
    intervalMs,
    async runBatch({ tx }) {
      await tx.select({ set: sql`set_config('ota.audit_retention', 'on', true)` }).from(sql`(select) as nothing`);
      const deleted = tx.$with("deleted", {}).as(sql`
        delete from audit_log where ctid = any (array(
          select ctid from audit_log where at < now() - make_interval(days => ${afterDays}::integer)
          order by at limit ${sql.raw(String(BATCH))} for update skip locked
        )) returning 1
      `);
      const [row] = await tx.with(deleted).select({ rows: sql<number>`count(*)::integer` }).from(sql`deleted`);
      const { rows = 0 } = row ?? {};
      return { more: rows === BATCH, rows };
    },
  };
}
