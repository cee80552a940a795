import { sql } from "drizzle-orm";
import { check, integer, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";
import { ATTEMPT_STATES, REPORTED_STATES } from "../vocabulary.ts";
import { moment, oneOf } from "./columns.ts";
import { upgradeAttempts } from "./upgrade-attempts.ts";

/** The history of an attempt, in the order of our receipt. Rows are only ever added. */
export const attemptEvents = pgTable(
  "attempt_events",
  {
    attemptId: integer("attempt_id")
      .notNull()
      .references(() => upgradeAttempts.id),
    /** 1, 2, 3, … within the attempt. */
    seq: integer("seq").notNull(),
    /** What the device said; none: the service itself moved the attempt. */
    reportedState: text("reported_state", { enum: REPORTED_STATES }),
    /** None for the event that opened the attempt. */
    fromState: text("from_state", { enum: ATTEMPT_STATES }),
    /** The state after it; equal to `fromState` where the report was history only. */
    toState: text("to_state", { enum: ATTEMPT_STATES }).notNull(),
    reportedVersion: text("reported_version"),
    progressPercent: smallint("progress_percent"),
    message: text("message"),
    details: text("details").array().notNull().default(sql`'{}'`),
    code: integer("code"),
    /** The device's own clock: data, never used for order. */
    deviceTime: moment("device_time"),
    receivedAt: moment("received_at").notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ name: "attempt_events_pkey", columns: [table.attemptId, table.seq] }),
    check("attempt_events_seq_check", sql`${table.seq} > 0`),
    check("attempt_events_reported_state_check", oneOf(table.reportedState, REPORTED_STATES)),
    check("attempt_events_from_state_check", oneOf(table.fromState, ATTEMPT_STATES)),
    check("attempt_events_to_state_check", oneOf(table.toState, ATTEMPT_STATES)),
    check("attempt_events_progress_percent_check", sql`${table.progressPercent} between 0 and 100`),
  ],
);
