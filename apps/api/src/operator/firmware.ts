import {
  deleteFirmware,
  FIRMWARE_STATES,
  getFirmware,
  listFirmware,
  releaseFirmware,
  signFirmware,
  withdrawFirmware,
} from "@ota/domain";
import { z } from "zod";
import { holdsArtifact } from "../artifacts/artifact-store.ts";
import { HttpProblem } from "../http/problems.ts";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { productNameSchema, publicIdSchema } from "../http/schemas.ts";
import { channelSchema } from "./fields.ts";
import { firmwareByUrlRoute } from "./firmware-by-url.ts";
import { givenSignatureSchema } from "./firmware-fields.ts";
import { firmwareUploadRoute } from "./firmware-upload.ts";
import { firmwareSchema, firmwareView } from "./firmware-view.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";

const params = z.strictObject({ firmwareId: publicIdSchema });

const releaseSchema = z
  .strictObject({
    channel: channelSchema
      .optional()
      .meta({ description: "Whose devices get it. Only with `startRollout`.", override: { default: "stable" } }),
    startRollout: z
      .boolean()
      .optional()
      .meta({
        description:
          "Whether to start a rollout to the whole channel at once. Without one the firmware reaches no device.",
        override: { default: false },
      }),
    priority: z
      .int()
      .min(-1000)
      .max(1000)
      .optional()
      .meta({
        description: "Of several offers a device takes the one of the highest priority, then the newest version.",
        override: { default: 0 },
      }),
    allowDowngrade: z
      .boolean()
      .optional()
      .meta({
        description: "Whether devices that run a newer version are taken back to this one.",
        override: { default: false },
      }),
  })
  .meta({ id: "ReleaseFirmware" });

const signatureSchema = z.strictObject({ signature: givenSignatureSchema }).meta({ id: "FirmwareSignature" });

/** Firmware: from the upload over the release to the withdrawal. */
export const firmwareRoutes: readonly RouteDefinition[] = [
  firmwareUploadRoute,
  firmwareByUrlRoute,
  defineRoute({
    method: "GET",
    path: "/v1/products/{product}/firmware",
    operationId: "listFirmware",
    summary: "List a product's firmware, newest first",
    tag: "Firmware",
    auth: "operator",
    request: {
      params: z.strictObject({ product: productNameSchema }),
      query: z.strictObject({ state: z.enum(FIRMWARE_STATES).optional(), ...pageFields }),
    },
    responses: { 200: { description: "A page of firmware", body: pageSchema(firmwareSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR"],
    async handler({ params, query }, { db }) {
      return { status: 200, body: pageBody(await listFirmware(db, { ...params, ...query }), firmwareView) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/firmware/{firmwareId}",
    operationId: "getFirmware",
    summary: "Get a firmware with its rollouts",
    tag: "Firmware",
    auth: "operator",
    request: { params },
    responses: { 200: { description: "The firmware", body: firmwareSchema } },
    problems: ["NOT_FOUND"],
    async handler({ params }, { db }) {
      return { status: 200, body: firmwareView(await getFirmware(db, params)) };
    },
  }),
  defineRoute({
    method: "PUT",
    path: "/v1/firmware/{firmwareId}/signature",
    operationId: "signFirmware",
    summary: "Add a draft's signature, or replace it",
    description: "It is verified by the product's key, and delivered with every offer of the firmware.",
    tag: "Firmware",
    auth: "operator",
    request: { params, body: { kind: "json", schema: signatureSchema } },
    responses: { 200: { description: "The signed draft", body: firmwareSchema } },
    problems: ["NOT_FOUND", "INVALID_FIELD", "INVALID_STATE", "SIGNATURE_INVALID"],
    async handler({ actor, params, body }, { db }) {
      return { status: 200, body: firmwareView(await signFirmware(db, { actor, ...params, ...body })) };
    },
  }),
  defineRoute({
    method: "DELETE",
    path: "/v1/firmware/{firmwareId}",
    operationId: "deleteFirmware",
    summary: "Delete a draft",
    description:
      "Its version is free again, and rollouts that were made of it are gone. What was ever released stays: withdraw it instead.",
    tag: "Firmware",
    auth: "operator",
    request: { params },
    responses: { 204: { description: "Deleted" } },
    problems: ["NOT_FOUND", "INVALID_STATE"],
    async handler({ actor, params }, { db }) {
      await deleteFirmware(db, { actor, ...params });
      return { status: 204 };
    },
  }),
  defineRoute({
    method: "POST",
    path: "/v1/firmware/{firmwareId}/release",
    operationId: "releaseFirmware",
    summary: "Release a firmware",
    description:
      "From now on rollouts can offer it. With `startRollout` a channel's devices are offered it at once; releasing again for " +
      "another channel offers it there too. Releasing again on the same terms changes nothing.",
    tag: "Firmware",
    auth: "operator",
    request: { params, body: { kind: "json", schema: releaseSchema, optional: true } },
    responses: { 200: { description: "The released firmware", body: firmwareSchema } },
    problems: [
      "NOT_FOUND",
      "INVALID_FIELD",
      "INVALID_STATE",
      "ALREADY_EXISTS",
      "SIGNATURE_REQUIRED",
      "ARTIFACT_MISSING",
    ],
    async handler({ actor, params, body }, { db, artifacts }) {
      const { artifact, sourceUrl } = await getFirmware(db, params);
      if (sourceUrl === null && !(await holdsArtifact(artifacts, artifact))) {
        throw new HttpProblem("ARTIFACT_MISSING", {
          detail: "The store does not hold this firmware's bytes: not released.",
        });
      }
      return { status: 200, body: firmwareView(await releaseFirmware(db, { actor, ...params, ...body })) };
    },
  }),
  defineRoute({
    method: "POST",
    path: "/v1/firmware/{firmwareId}/withdraw",
    operationId: "withdrawFirmware",
    summary: "Withdraw a firmware, for good",
    description:
      "No device is offered it any more from its next check on. One that is past the download may finish; one that is in " +
      "the middle of it gets 410 for the file.",
    tag: "Firmware",
    auth: "operator",
    request: { params },
    responses: { 200: { description: "The withdrawn firmware", body: firmwareSchema } },
    problems: ["NOT_FOUND", "INVALID_STATE"],
    async handler({ actor, params }, { db }) {
      return { status: 200, body: firmwareView(await withdrawFirmware(db, { actor, ...params })) };
    },
  }),
];
