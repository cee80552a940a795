import { eq } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { firmware } from "../schema/index.ts";
import { type Firmware, getFirmware, lockFirmware } from "./firmware.ts";
import { findProduct } from "./products.ts";
import { requireSigningKey } from "./register-firmware.ts";
import { parseSignature, requireSignature } from "./signatures.ts";

/**
 * Adds the signature to a draft, or replaces the one that it has, such as after a change of the product's key. Adding the
 * same again changes nothing.
 * Throws NOT_FOUND, INVALID_FIELD, SIGNATURE_INVALID, or INVALID_STATE where it is no draft or the product has no key.
 */
export async function signFirmware(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly firmwareId: string;
    /** The base64 of the Ed25519 signature over its manifest, by the product's key. */
    readonly signature: string;
  },
): Promise<Firmware> {
  const signature = parseSignature(input.signature);
  return db.transaction(async (tx) => {
    const { firmware: row, product: productName } = await lockFirmware(tx, input.firmwareId);
    const signatureKey = requireSigningKey(await findProduct(tx, productName));
    const { version, sizeBytes, sha256 } = row;
    requireSignature({ signature, signatureKey }, { product: productName, version, sizeBytes, sha256 });
    if (row.signature?.equals(signature) && row.signatureKey?.equals(signatureKey)) return getFirmware(tx, input);
    if (row.state !== "draft") {
      throw new OtaError("INVALID_STATE", "Only a draft can be signed. Devices may have this one without.", {
        details: { state: row.state },
      });
    }
    await tx.update(firmware).set({ signature, signatureKey }).where(eq(firmware.id, row.id));
    await recordAudit(tx, {
      actor: input.actor,
      action: "firmware.sign",
      subjectId: row.publicId,
      before: signatureFacts(row),
      after: signatureFacts({ signature, signatureKey }),
    });
    return getFirmware(tx, input);
  });
}

/** A signature is no secret: devices get it. */
function signatureFacts(row: { readonly signature: Buffer | null; readonly signatureKey: Buffer | null }) {
  return {
    signature: row.signature?.toString("base64") ?? null,
    signingPublicKey: row.signatureKey?.toString("base64") ?? null,
  };
}
