import { sql } from "drizzle-orm";
import { bigint, boolean, check, index, integer, pgTable, text, unique, uuid } from "drizzle-orm/pg-core";
import { ROLLOUT_STATES } from "../vocabulary.ts";
import { internalId, internalRef, moment, oneOf } from "./columns.ts";
import { firmware } from "./firmware.ts";

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
    allowDowngrade: boolean("allow_downgrade").notNull().default(false),
    requiresConfirmation: boolean("requires_confirmation").notNull().default(false),
    /** Grows with every change of the row; a place in the rollout is taken against the revision that was decided on. */
    revision: bigint("revision", { mode: "bigint" }).notNull().default(sql`1`),
    createdAt: moment("created_at").notNull().defaultNow(),
    updatedAt: moment("updated_at").notNull().defaultNow(),
  },
  (table) => [
    unique("rollouts_public_id_unique").on(table.publicId),
    index("rollouts_firmware_id_id_index").on(table.firmwareId, table.id),
    check("rollouts_state_check", oneOf(table.state, ROLLOUT_STATES)),
    check("rollouts_percentage_basis_points_check", sql`${table.percentageBasisPoints} between 0 and 10000`),
  ],
);
