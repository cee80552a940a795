import { sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { isAnyOf } from "../id-list.ts";
import { devices } from "../schema/index.ts";

/**
 * Writes devices' rows with what they hold. It belongs into every transaction that takes from devices what a check may
 * have decided on, and that is not in their rows: a check that opens an attempt without a transaction compares who has
 * written the row last, and nothing else shows it what was committed since its statement began.
 *
 * The rows are locked in the order of their ids.
 */
export async function rewriteDevices(tx: Database, deviceIds: readonly bigint[]): Promise<void> {
  const locked = tx.$with("locked").as(
    tx
      .select({ id: sql`${devices.id}`.as("locked_id") })
      .from(devices)
      .where(isAnyOf(devices.id, deviceIds))
      .orderBy(devices.id)
      .for("no key update"),
  );
  await tx
    .with(locked)
    .update(devices)
    .set({ lastSeenAt: sql`${devices.lastSeenAt}` })
    .from(locked)
    .where(sql`${devices.id} = ${locked.id}`);
}
