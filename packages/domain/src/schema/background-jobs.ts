import { bigint, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { moment } from "./columns.ts";

/**
 * Work that any process may do and one does at a time. Each of its transactions first moves `fence` up to its lease's
 * token: where the row has a greater one, a newer holder is at work, and nothing is written.
 */
export const backgroundJobs = pgTable("background_jobs", {
  name: text("name").primaryKey(),
  /** The greatest fencing token that was seen; none: the lock store gives none, and the guard is skipped. */
  fence: bigint("fence", { mode: "bigint" }),
  /** Where the next batch goes on, in the job's own words. */
  position: jsonb("position"),
  /** When its newest batch was written. */
  ranAt: moment("ran_at"),
});
