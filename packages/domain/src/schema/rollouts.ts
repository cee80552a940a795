import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  smallint,
  text,
  unique,
  uuid,
} from "drizzle-orm/pg-core";
import { PAUSE_CAUSES, ROLLOUT_STATES } from "../vocabulary.ts";
import { internalId, internalRef, moment, oneOf, silenceTimeouts } from "./columns.ts";
import { firmware } from "./firmware.ts";

/**
 * One step of a rollout to more of its fleet. The rollout goes on to the next one when both conditions hold for the
 * outcomes since the phase began; the last phase has none to go to.
 */
export interface RolloutPhase {
  readonly percentageBasisPoints: number;
  /** So many attempts have succeeded. */
  readonly minSucceeded: number;
  /** The share of the outcomes that are successes, in hundredths of a percent. */
  readonly minSuccessBasisPoints: number;
}

/** The offer of one firmware to part of a fleet: a firmware reaches devices only through one. */
export const rollouts = pgTable(
  "rollouts",
  {
    id: internalId("id").primaryKey(),
    publicId: uuid("public_id").notNull(),
    firmwareId: internalRef("firmware_id")
      .notNull()
      .references(() => firmware.id),
    channel: text("channel").notNull(),
    state: text("state", { enum: ROLLOUT_STATES }).notNull(),
    /** The greatest is tried first; among equals the newest firmware. */
    priority: integer("priority").notNull().default(0),
    /** The share of the fleet in hundredths of a percent: 10000 is everybody. */
    percentageBasisPoints: integer("percentage_basis_points").notNull().default(10_000),
    /** Devices in any of these; empty: whatever their groups. */
    groups: text("groups").array().notNull().default(sql`'{}'`),
    /** The condition on a device's attributes, in the filter grammar; none: any. */
    attributeFilter: jsonb("attribute_filter"),
    /** The hardware it is for, within what the firmware runs on; empty: all of that. */
    hardwareRevisions: text("hardware_revisions").array().notNull().default(sql`'{}'`),
    /** How many attempts may be open at once, and how many devices may ever have had one; none: no cap. */
    maxConcurrent: integer("max_concurrent"),
    maxTotal: integer("max_total"),
    /** It pauses once so many attempts have succeeded since it was started or resumed, for an operator to look at. */
    successThreshold: integer("success_threshold"),
    /** It pauses once this share of the outcomes since then are failures, in hundredths of a percent … */
    errorThresholdBasisPoints: integer("error_threshold_basis_points"),
    /** … of at least so many outcomes. */
    errorThresholdMinOutcomes: integer("error_threshold_min_outcomes").notNull().default(10),
    /** Its phases in their order; empty: it has none, and the percentage is the operator's alone. */
    phases: jsonb("phases").$type<readonly RolloutPhase[]>().notNull().default([]),
    /** The index of the phase that it is in; the percentage is that phase's while it has phases. */
    phaseIndex: smallint("phase_index").notNull().default(0),
    /** The days on which its window opens by the device's clock, 1 (Monday) to 7; none: it is always open. */
    windowDays: smallint("window_days").array(),
    /** Minutes after midnight at which it opens and closes; closing at or before the opening is on the next day. */
    windowFromMinute: smallint("window_from_minute"),
    windowToMinute: smallint("window_to_minute"),
    /** As the product's of the same names, in their place; none: the product's. */
    maxAttempts: smallint("max_attempts"),
    backoffSeconds: integer("backoff_seconds"),
    timeoutsSeconds: silenceTimeouts("timeouts_seconds").notNull().default({}),
    /** Set while it is paused; a rollout that was paused before this column was there has none. */
    pausedBy: text("paused_by", { enum: PAUSE_CAUSES }),
    allowDowngrade: boolean("allow_downgrade").notNull().default(false),
    requiresConfirmation: boolean("requires_confirmation").notNull().default(false),
    /** Grows with every change of the row; a place in the rollout is taken against the revision that was decided on. */
    revision: bigint("revision", { mode: "bigint" }).notNull().default(sql`1`),
    createdAt: moment("created_at").notNull().defaultNow(),
    /** When it was first running; none also for one from before this column was there. */
    startedAt: moment("started_at"),
    /** When it was finished or stopped. */
    endedAt: moment("ended_at"),
    updatedAt: moment("updated_at").notNull().defaultNow(),
  },
  (table) => [
    unique("rollouts_public_id_unique").on(table.publicId),
    index("rollouts_firmware_id_id_index").on(table.firmwareId, table.id),
    check("rollouts_state_check", oneOf(table.state, ROLLOUT_STATES)),
    check("rollouts_percentage_basis_points_check", sql`${table.percentageBasisPoints} between 0 and 10000`),
    check("rollouts_max_concurrent_check", sql`${table.maxConcurrent} > 0`),
    check("rollouts_max_total_check", sql`${table.maxTotal} > 0`),
    check("rollouts_success_threshold_check", sql`${table.successThreshold} > 0`),
    check("rollouts_error_threshold_basis_points_check", sql`${table.errorThresholdBasisPoints} between 1 and 10000`),
    check("rollouts_error_threshold_min_outcomes_check", sql`${table.errorThresholdMinOutcomes} > 0`),
    check(
      "rollouts_phase_index_check",
      // `case`, because the operands of `and` may be evaluated in any order.
      sql`case when jsonb_typeof(${table.phases}) <> 'array' then false
        else ${table.phaseIndex} between 0 and greatest(jsonb_array_length(${table.phases}) - 1, 0) end`,
    ),
    check(
      "rollouts_window_days_check",
      sql`cardinality(${table.windowDays}) > 0 and ${table.windowDays} <@ '{1,2,3,4,5,6,7}'`,
    ),
    check("rollouts_window_from_minute_check", sql`${table.windowFromMinute} between 0 and 1439`),
    check("rollouts_window_to_minute_check", sql`${table.windowToMinute} between 0 and 1439`),
    // All of a window, or none of it.
    check(
      "rollouts_window_check",
      sql`num_nulls(${table.windowDays}, ${table.windowFromMinute}, ${table.windowToMinute}) in (0, 3)`,
    ),
    check("rollouts_max_attempts_check", sql`${table.maxAttempts} > 0`),
    check("rollouts_backoff_seconds_check", sql`${table.backoffSeconds} >= 0`),
    check("rollouts_timeouts_seconds_check", sql`jsonb_typeof(${table.timeoutsSeconds}) = 'object'`),
    check("rollouts_paused_by_check", oneOf(table.pausedBy, PAUSE_CAUSES)),
  ],
);
