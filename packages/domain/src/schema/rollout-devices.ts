import { index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { internalRef, moment } from "./columns.ts";
import { devices } from "./devices.ts";
import { rollouts } from "./rollouts.ts";

/** A rollout's allow-list: devices that belong to it whatever their bucket. */
export const rolloutDevices = pgTable(
  "rollout_devices",
  {
    rolloutId: internalRef("rollout_id")
      .notNull()
      .references(() => rollouts.id),
    deviceId: internalRef("device_id")
      .notNull()
      .references(() => devices.id),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (table) => [
    // The device first: a check asks which lists its device is on.
    primaryKey({ name: "rollout_devices_pkey", columns: [table.deviceId, table.rolloutId] }),
    index("rollout_devices_rollout_id_device_id_index").on(table.rolloutId, table.deviceId),
  ],
);
