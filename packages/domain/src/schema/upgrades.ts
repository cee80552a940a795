import { index, integer, pgTable, text, unique, uuid } from "drizzle-orm/pg-core";
import { internalId, internalRef, moment } from "./columns.ts";
import { devices } from "./devices.ts";
import { firmware } from "./firmware.ts";
import { rollouts } from "./rollouts.ts";

/** The one record of a device's move to a firmware: the unique constraint is the guarantee. State lives in its attempts. */
export const upgrades = pgTable(
  "upgrades",
  {
    id: internalId("id").primaryKey(),
    publicId: uuid("public_id").notNull(),
    deviceId: internalRef("device_id")
      .notNull()
      .references(() => devices.id),
    firmwareId: internalRef("firmware_id")
      .notNull()
      .references(() => firmware.id),
    /** The rollout that first offered it. */
    rolloutId: internalRef("rollout_id")
      .notNull()
      .references(() => rollouts.id),
    /** What the device ran when the record was made, where it was known. */
    fromVersion: text("from_version"),
    /** Attempts numbered above this count towards the cap: an operator's reset sets it to the last attempt's number. */
    attemptsForgiven: integer("attempts_forgiven").notNull().default(0),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (table) => [
    unique("upgrades_public_id_unique").on(table.publicId),
    unique("upgrades_device_id_firmware_id_unique").on(table.deviceId, table.firmwareId),
    index("upgrades_device_id_id_index").on(table.deviceId, table.id),
    index("upgrades_firmware_id_id_index").on(table.firmwareId, table.id),
    index("upgrades_rollout_id_id_index").on(table.rolloutId, table.id),
  ],
);
