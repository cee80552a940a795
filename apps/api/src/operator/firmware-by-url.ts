import { registerFirmware } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { plainText, productNameSchema } from "../http/schemas.ts";
import { hardwareRevisionSchema, versionSchema } from "./fields.ts";
import {
  fileNameOf,
  fileNameSchema,
  givenMd5Schema,
  givenSha1Schema,
  givenSha256Schema,
  givenSignatureSchema,
  requiresVersionSchema,
} from "./firmware-fields.ts";
import { firmwareSchema, firmwareView } from "./firmware-view.ts";

const bodySchema = z
  .strictObject({
    version: versionSchema,
    sourceUrl: plainText(2048).min(1).meta({
      description: "http:// or https://, without user, password and fragment. It must answer devices as it is.",
      example: "https://cdn.example/prime-hub/2.1.0.bin",
    }),
    sizeBytes: z.int().min(1),
    sha256: givenSha256Schema,
    sha1: givenSha1Schema.optional().meta({ description: "For devices that know nothing newer; absent: not told." }),
    md5: givenMd5Schema.optional().meta({ description: "As `sha1`." }),
    hardwareRevisions: z
      .array(hardwareRevisionSchema)
      .max(64)
      .optional()
      .meta({ description: "The hardware it runs on. Absent: any." }),
    requiresVersion: requiresVersionSchema.optional(),
    fileName: fileNameSchema.optional(),
    signature: givenSignatureSchema.optional(),
  })
  .meta({ id: "FirmwareByUrl" });

/** Registers a firmware whose file lies on another host. Nobody here looks at it: its hashes are the operator's word. */
export const firmwareByUrlRoute: RouteDefinition = defineRoute({
  method: "POST",
  path: "/v1/products/{product}/firmware/by-url",
  operationId: "registerFirmwareByUrl",
  summary: "Register a file on another host as a draft",
  description:
    "For files that a content delivery network serves. The service never fetches the file: devices ask the service for it as " +
    "for any other, and those that were offered it are sent there by a 302. They check its size and hash, so give them " +
    "as they are.",
  tag: "Firmware",
  auth: "operator",
  request: {
    params: z.strictObject({ product: productNameSchema }),
    body: { kind: "json", schema: bodySchema },
  },
  responses: {
    201: { description: "The draft", body: firmwareSchema, headers: { Location: "Where the firmware is." } },
  },
  problems: [
    ...(["NOT_FOUND", "ALREADY_EXISTS", "INVALID_VERSION", "INVALID_FIELD", "INVALID_STATE"] as const),
    "SIGNATURE_INVALID",
  ],
  async handler({ actor, params, body }, { db }) {
    const { product } = params;
    const { sizeBytes, sha256, sha1 = null, md5 = null, fileName, ...facts } = body;
    const artifact = {
      ...{ sizeBytes, sha256, sha1, md5, contentType: "application/octet-stream" },
      fileName: fileName ?? fileNameOf({ product, version: facts.version }),
    };
    const firmware = await registerFirmware(db, { actor, product, ...facts, artifact });
    return { status: 201, headers: { Location: `/v1/firmware/${firmware.id}` }, body: firmwareView(firmware) };
  },
});
