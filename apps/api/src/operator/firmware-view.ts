import { FIRMWARE_STATES, type Firmware } from "@ota/domain";
import { z } from "zod";
import { productNameSchema, publicIdSchema, timeSchema } from "../http/schemas.ts";
import { hardwareRevisionSchema, md5Schema, sha1Schema, sha256Schema, versionSchema } from "./fields.ts";
import { rolloutSchema, rolloutView } from "./rollout-view.ts";

/** What operators see of a firmware. */
export const firmwareSchema = z
  .object({
    id: publicIdSchema,
    product: productNameSchema,
    version: versionSchema,
    state: z.enum(FIRMWARE_STATES).meta({ description: "Only released firmware is offered to devices." }),
    hardwareRevisions: z.array(hardwareRevisionSchema).meta({ description: "The hardware it runs on; empty: any." }),
    requiresVersion: z
      .string()
      .nullable()
      .meta({ description: "The least version a device must run to take this one." }),
    artifact: z.object({
      sizeBytes: z.int().min(1),
      sha256: sha256Schema,
      sha1: sha1Schema.nullable(),
      md5: md5Schema.nullable(),
      fileName: z.string(),
      contentType: z.string(),
    }),
    sourceUrl: z
      .string()
      .nullable()
      .meta({ description: "Where the file lies on another host; null: the service has it itself." }),
    signature: z.string().nullable().meta({ description: "The base64 of its Ed25519 signature; null: not signed." }),
    rollouts: z.array(rolloutSchema).meta({ description: "Its offers, newest first." }),
    createdAt: timeSchema,
    releasedAt: timeSchema.nullable(),
    withdrawnAt: timeSchema.nullable(),
  })
  .meta({ id: "Firmware" });

/** A firmware as JSON. */
export function firmwareView(firmware: Firmware): z.input<typeof firmwareSchema> {
  const { id, product, version, state, hardwareRevisions, requiresVersion, artifact, sourceUrl, signature } = firmware;
  const { sizeBytes, sha256, sha1, md5, fileName, contentType } = artifact;
  return {
    id,
    product,
    version,
    state,
    hardwareRevisions: [...hardwareRevisions],
    requiresVersion,
    artifact: { sizeBytes, sha256, sha1, md5, fileName, contentType },
    sourceUrl,
    signature,
    rollouts: firmware.rollouts.map(rolloutView),
    createdAt: firmware.createdAt.toISOString(),
    releasedAt: firmware.releasedAt?.toISOString() ?? null,
    withdrawnAt: firmware.withdrawnAt?.toISOString() ?? null,
  };
}
