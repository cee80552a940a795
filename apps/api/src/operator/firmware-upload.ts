import type { IncomingMessage } from "node:http";
import { checkNewFirmware, registerFirmware } from "@ota/domain";
import { z } from "zod";
import { artifactProblem } from "../artifacts/artifact-problem.ts";
import { holdsArtifact, type PutOptions, type StoredArtifact } from "../artifacts/artifact-store.ts";
import { uploadChunks } from "../artifacts/upload-chunks.ts";
import { discardRest, SENDER_IDLE_MS } from "../http/discard-rest.ts";
import { HttpProblem } from "../http/problems.ts";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { plainText, productNameSchema } from "../http/schemas.ts";
import { hardwareRevisionSchema, versionSchema } from "./fields.ts";
import {
  fileNameOf,
  fileNameSchema,
  givenSha256Schema,
  givenSignatureSchema,
  requiresVersionSchema,
} from "./firmware-fields.ts";
import { firmwareSchema, firmwareView } from "./firmware-view.ts";

const query = z.strictObject({
  version: versionSchema,
  sha256: givenSha256Schema.optional().meta({
    description:
      "What the bytes must have; checked before anything is stored. Send it: it protects against a mixed-up file.",
  }),
  sizeBytes: z.coerce.number().int().min(1).optional().meta({ description: "How many bytes there must be." }),
  hardwareRevisions: plainText(8192)
    .transform((list) => list.split(","))
    .pipe(z.array(hardwareRevisionSchema).max(64))
    .optional()
    .meta({ description: "The hardware it runs on, separated by commas. Absent: any.", example: "rev-b,rev-c" }),
  requiresVersion: requiresVersionSchema.optional(),
  fileName: fileNameSchema.optional(),
  signature: givenSignatureSchema.optional(),
});

/** Uploads a firmware as a stream. The bytes are checked and durable before the firmware exists. */
export const firmwareUploadRoute: RouteDefinition = defineRoute({
  method: "POST",
  path: "/v1/products/{product}/firmware",
  operationId: "uploadFirmware",
  summary: "Upload a firmware as a draft",
  description:
    "The body is the file as it is (`curl --data-binary @file` or `--upload-file`), of any length up to the service's limit. " +
    "A draft is offered to nobody until it is released. When the upload is cut off, or does not match `sha256` or " +
    "`sizeBytes`, nothing is kept.",
  tag: "Firmware",
  auth: "operator",
  request: {
    params: z.strictObject({ product: productNameSchema }),
    query,
    body: { kind: "stream", contentTypes: ["application/octet-stream"], description: "The file." },
  },
  responses: {
    201: { description: "The draft", body: firmwareSchema, headers: { Location: "Where the firmware is." } },
  },
  problems: [
    ...(["NOT_FOUND", "ALREADY_EXISTS", "INVALID_VERSION", "INVALID_FIELD", "INVALID_STATE"] as const),
    ...(["ARTIFACT_TOO_LARGE", "ARTIFACT_EMPTY", "ARTIFACT_SIZE_MISMATCH", "ARTIFACT_SHA256_MISMATCH"] as const),
    ...(["STORAGE_FULL", "SIGNATURE_INVALID", "SERVICE_BUSY"] as const),
  ],
  async handler({ actor, params, query, raw }, { db, artifacts, maxArtifactBytes }) {
    const { product } = params;
    const { sha256, sizeBytes, fileName, ...rest } = query;
    const facts = { product, ...rest };
    const upload = { maxSizeBytes: maxArtifactBytes, expected: { sha256, sizeBytes } };
    let stored: StoredArtifact;
    try {
      await checkNewFirmware(db, facts);
      checkLength(raw, upload);
      raw.setTimeout(SENDER_IDLE_MS, () => raw.destroy());
      stored = await artifacts.put(uploadChunks(raw), upload);
      raw.setTimeout(0);
    } catch (error) {
      discardRest(raw);
      throw artifactProblem(error);
    }
    const artifact = { ...stored, fileName: fileName ?? fileNameOf(facts), contentType: "application/octet-stream" };
    const isStored = () => holdsArtifact(artifacts, stored);
    const firmware = await registerFirmware(db, { actor, ...facts, artifact, isStored });
    return { status: 201, headers: { Location: `/v1/firmware/${firmware.id}` }, body: firmwareView(firmware) };
  },
});

/** Refuses what its own Content-Length shows to be wrong, before a byte of it is read. */
function checkLength(raw: IncomingMessage, { maxSizeBytes, expected }: PutOptions): void {
  const length = raw.headers["content-length"];
  if (length === undefined) return;
  if (Number(length) > maxSizeBytes) {
    throw new HttpProblem("ARTIFACT_TOO_LARGE", {
      detail: `The upload has ${length} bytes, the limit is ${maxSizeBytes} bytes.`,
      members: { maxSizeBytes },
    });
  }
  if (expected?.sizeBytes !== undefined && Number(length) !== expected.sizeBytes) {
    throw new HttpProblem("ARTIFACT_SIZE_MISMATCH", {
      detail: `Announced were ${expected.sizeBytes} bytes, the upload has ${length}. Nothing was stored.`,
      members: { expectedSizeBytes: expected.sizeBytes, receivedSizeBytes: Number(length) },
    });
  }
}
