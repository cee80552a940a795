import { eq } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { firmware, rollouts } from "../schema/index.ts";
import { lockFirmware } from "./firmware.ts";

/**
 * Deletes a draft, which no device has ever seen: its version is free again, and the garbage collection may take its file.
 * What was ever released stays for good, since records refer to it.
 * Throws NOT_FOUND, or INVALID_STATE where it is no draft or has a rollout.
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
    const [rollout] = await tx
      .select({ rolloutId: rollouts.publicId })
      .from(rollouts)
      .where(eq(rollouts.firmwareId, row.id))
      .limit(1);
    if (rollout !== undefined) {
      throw new OtaError("INVALID_STATE", "A rollout of this firmware has been made: it stays.", { details: rollout });
    }
    await tx.delete(firmware).where(eq(firmware.id, row.id));
    const { version, sizeBytes, sha256, fileName } = row;
    await recordAudit(tx, {
      actor: input.actor,
      action: "firmware.delete",
      subjectId: row.publicId,
      before: { product, version, sizeBytes, sha256, fileName },
    });
  });
}
