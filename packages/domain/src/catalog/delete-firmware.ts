import { eq } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { isAnyOf } from "../id-list.ts";
import { firmware, rolloutCounters, rolloutDevices, rollouts } from "../schema/index.ts";
import { lockFirmware } from "./firmware.ts";

/**
 * Deletes a draft, which no device has ever seen, with the rollouts that were made of it: its version is free again, and
 * the garbage collection may take its file. What was ever released stays for good, since records refer to it.
 * Throws NOT_FOUND, or INVALID_STATE where it is no draft.
 */
export async function deleteFirmware(
  db: Database,
  input: { readonly actor: Actor; readonly firmwareId: string },
): Promise<void> {
  await db.transaction(async (tx) => {
    const { firmware: row, product } = await lockFirmware(tx, input.firmwareId);
    if (row.state !== "draft") {
      throw new OtaError("INVALID_STATE", "Only a draft can be deleted. Withdraw this one instead.", {
        details: { state: row.state },
      });
    }
    const deletedRollouts = await deleteRolloutsOf(tx, row.id);
    await tx.delete(firmware).where(eq(firmware.id, row.id));
    const { version, sizeBytes, sha256, fileName } = row;
    await recordAudit(tx, {
      actor: input.actor,
      action: "firmware.delete",
      subjectId: row.publicId,
      before: { product, version, sizeBytes, sha256, fileName, rollouts: deletedRollouts },
    });
  });
}

/** Rollouts of a draft have never been started, so that no upgrade belongs to them. Gives their ids, the oldest first. */
async function deleteRolloutsOf(tx: Database, firmwareRowId: bigint): Promise<readonly string[]> {
  const found = await tx
    .select({ id: rollouts.id, publicId: rollouts.publicId })
    .from(rollouts)
    .where(eq(rollouts.firmwareId, firmwareRowId))
    .orderBy(rollouts.id)
    // Whoever puts a device on an allow-list holds the rollout's row meanwhile.
    .for("update");
  const ids = found.map(({ id }) => id);
  if (ids.length === 0) return [];
  await tx.delete(rolloutDevices).where(isAnyOf(rolloutDevices.rolloutId, ids));
  await tx.delete(rolloutCounters).where(isAnyOf(rolloutCounters.rolloutId, ids));
  await tx.delete(rollouts).where(isAnyOf(rollouts.id, ids));
  return found.map(({ publicId }) => publicId);
}
