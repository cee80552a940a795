import { sql } from "drizzle-orm";
import { bigint, check, index, integer, pgTable, text, unique, uniqueIndex } from "drizzle-orm/pg-core";
import { ATTEMPT_STATES, CANCEL_OUTCOMES, LIVE_ATTEMPT_STATES, TERMINAL_ATTEMPT_STATES } from "../vocabulary.ts";
import { internalRef, moment, oneOf } from "./columns.ts";
import { firmware } from "./firmware.ts";
import { rollouts } from "./rollouts.ts";
import { upgrades } from "./upgrades.ts";

/** One try on an upgrade record. Its state is the upgrade's state while it is the newest of the record. */
export const upgradeAttempts = pgTable(
  "upgrade_attempts",
  {
    /** A positive int32, because device clients read it as a C int. */
    id: integer("id").generatedAlwaysAsIdentity().primaryKey(),
    upgradeId: internalRef("upgrade_id")
      .notNull()
      .references(() => upgrades.id),
    /**
     * The upgrade's device and firmware again: for the one-live-attempt index and for lists by firmware and state. The
     * device is no foreign key, since the upgrade's is one already: deleting a device would search this table for it,
     * and an index for that alone would be written with every transition.
     */
    deviceId: internalRef("device_id").notNull(),
    firmwareId: internalRef("firmware_id")
      .notNull()
      .references(() => firmware.id),
    /** The rollout under whose offer it was opened. */
    rolloutId: internalRef("rollout_id")
      .notNull()
      .references(() => rollouts.id),
    /** 1, 2, 3, … within the upgrade. */
    n: integer("n").notNull(),
    state: text("state", { enum: ATTEMPT_STATES }).notNull(),
    /**
     * As what it ends once the device has answered: set while `cancelling`. `cancelled` stays afterwards, and says that an
     * operator has cancelled the upgrade, while it is the newest attempt. `superseded` on one that is cancelled: the service
     * has taken the offer back before the device had begun. None: the service later on, or the device.
     */
    cancelOutcome: text("cancel_outcome", { enum: CANCEL_OUTCOMES }),
    /** The sequence number of its newest event, taken under the row's lock. */
    lastSeq: integer("last_seq").notNull().default(0),
    failureCode: integer("failure_code"),
    failureMessage: text("failure_message"),
    openedAt: moment("opened_at").notNull().defaultNow(),
    updatedAt: moment("updated_at").notNull().defaultNow(),
    closedAt: moment("closed_at"),
    /** When a silent attempt is to be ended, by the database's clock; none: never. */
    deadlineAt: moment("deadline_at"),
    /**
     * The greatest fencing token by which it was written: a holder of an older lease changes it no more. None: no write so
     * far was under a fenced lock.
     */
    fence: bigint("fence", { mode: "bigint" }),
  },
  (table) => [
    unique("upgrade_attempts_upgrade_id_n_unique").on(table.upgradeId, table.n),
    uniqueIndex("upgrade_attempts_live_device_id_unique")
      .on(table.deviceId)
      .where(oneOf(table.state, LIVE_ATTEMPT_STATES)),
    index("upgrade_attempts_live_deadline_at_index")
      .on(table.deadlineAt, table.id)
      .where(oneOf(table.state, LIVE_ATTEMPT_STATES)),
    index("upgrade_attempts_firmware_id_state_upgrade_id_index").on(table.firmwareId, table.state, table.upgradeId),
    index("upgrade_attempts_state_upgrade_id_index").on(table.state, table.upgradeId),
    index("upgrade_attempts_rollout_id_state_upgrade_id_index").on(table.rolloutId, table.state, table.upgradeId),
    // By which old history is found; open attempts are not in it.
    index("upgrade_attempts_closed_at_id_index").on(table.closedAt, table.id).where(sql`${table.closedAt} is not null`),
    check("upgrade_attempts_id_check", sql`${table.id} > 0`),
    check("upgrade_attempts_n_check", sql`${table.n} > 0`),
    check("upgrade_attempts_state_check", oneOf(table.state, ATTEMPT_STATES)),
    check("upgrade_attempts_cancel_outcome_check", oneOf(table.cancelOutcome, CANCEL_OUTCOMES)),
    check(
      "upgrade_attempts_closed_at_check",
      sql`(${table.closedAt} is not null) = (${oneOf(table.state, TERMINAL_ATTEMPT_STATES)})`,
    ),
  ],
);
