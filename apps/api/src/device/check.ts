import { type CheckAnswer, isPastDownload, LIVE_ATTEMPT_STATES, NONE_REASONS } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { attemptIdSchema, attributeChangesSchema, plainText, publicIdSchema } from "../http/schemas.ts";

/** A version as a device says it. One that is not valid in the product's scheme is an answer's matter, not an error. */
const reportedVersionSchema = plainText(256).min(1);

const checkSchema = z
  .strictObject({
    version: reportedVersionSchema.optional().meta({
      description:
        "The version that the device runs. Absent: the last one that it is known to have installed, else it is taken to " +
        "have none.",
      example: "1.0.0",
    }),
    hardwareRevision: plainText(128)
      .min(1)
      .optional()
      .meta({ description: "The hardware that it is.", example: "rev-b" }),
    attributes: attributeChangesSchema.optional(),
  })
  .meta({ id: "Check" });

const deviceSchema = z.object({ id: publicIdSchema, serial: z.string(), product: z.string() });
const pollAfterSeconds = z.int().meta({
  description: "When to ask again. Each device has its own slot in its product's interval: keep to it.",
});

const answerSchema = z
  .discriminatedUnion("decision", [
    z.object({
      decision: z.literal("update"),
      device: deviceSchema,
      attempt: z.object({
        id: attemptIdSchema.meta({ description: "What the device's reports go to." }),
        number: z.int().meta({ description: "The how many-th attempt at this upgrade it is." }),
        state: z.enum(LIVE_ATTEMPT_STATES),
      }),
      upgradeId: publicIdSchema,
      firmware: z.object({
        id: publicIdSchema,
        version: z.string(),
        sizeBytes: z.int(),
        sha256: z.string(),
        sha1: z.string().optional().meta({ description: "Absent where it is not known of a file on another host." }),
        md5: z.string().optional().meta({ description: "As `sha1`." }),
        signature: z
          .string()
          .optional()
          .meta({
            description:
              "Where the firmware is signed: the base64 of the Ed25519 signature, by the product's key, over five lines " +
              "joined by line feeds, with none at the end: `ota-fw-v1`, and of this answer `device.product`, and the " +
              "firmware's `version`, `sizeBytes` and `sha256`. Verify it before you install.",
          }),
        fileName: z.string(),
        contentType: z.string(),
        url: z
          .url()
          .optional()
          .meta({
            description:
              "Where the file is. Works without a token for a limited time; a later check gives a fresh one. It may redirect " +
              "to another host. Absent while the attempt is `awaiting_confirmation`: the device asks, reports `confirmed`, and " +
              "checks again.",
          }),
      }),
      pollAfterSeconds,
    }),
    z.object({
      decision: z.literal("none"),
      reason: z.enum(NONE_REASONS).meta({
        description:
          "`NO_FIRMWARE`: none is released, or no running rollout offers it. What an operator can do about each reason " +
          "stands in the device's explanation, as `advice`.",
      }),
      stopping: z.object({ id: attemptIdSchema, number: z.int() }).optional().meta({
        description:
          "An attempt that the device is to stop, if it can: it reports `cancelled`, or `cancel_rejected` where it cannot.",
      }),
      device: deviceSchema,
      pollAfterSeconds,
    }),
  ])
  .meta({ id: "CheckAnswer" });

/** The device's question. Asking again, however often and at once, changes nothing: the answer is the same attempt. */
export const checkRoute: RouteDefinition = defineRoute({
  method: "POST",
  path: "/v1/check",
  operationId: "checkForUpdate",
  summary: "Ask whether there is firmware",
  description:
    "Answers with the one attempt that the device is to work on, or with the reason why there is none. Safe to repeat: " +
    "however many requests come at once, there is one upgrade record for each device and firmware.",
  tag: "Devices",
  auth: "device",
  request: { body: { kind: "json", schema: checkSchema, optional: true } },
  responses: { 200: { description: "The decision", body: answerSchema } },
  problems: [],
  refusable: true,
  async handler({ credentials, body, note, raw }, services) {
    const answer = await services.checks.checkForUpdate({ ...credentials, reported: body });
    note(factsOf(answer));
    const publicUrl = services.publicUrlOf(raw);
    return { status: 200, body: answerView(answer, (id, of) => services.artifactUrls.sign(id, { publicUrl, ...of })) };
  },
});

function answerView(
  answer: CheckAnswer,
  urlOf: (firmwareId: string, options: { readonly finishing: boolean }) => string,
): z.input<typeof answerSchema> {
  if (answer.decision === "none") {
    const { decision, reason, stopping, device, pollAfterSeconds } = answer;
    return { decision, reason, stopping, device, pollAfterSeconds };
  }
  const { decision, device, attempt, upgradeId, pollAfterSeconds } = answer;
  const { sha1, md5, signature, ...firmware } = answer.firmware;
  return {
    decision,
    device,
    attempt,
    upgradeId,
    firmware: {
      ...firmware,
      ...(sha1 === null ? {} : { sha1 }),
      ...(md5 === null ? {} : { md5 }),
      ...(signature === null ? {} : { signature }),
      ...(attempt.state === "awaiting_confirmation"
        ? {}
        : { url: urlOf(firmware.id, { finishing: isPastDownload(attempt.state) }) }),
    },
    pollAfterSeconds,
  };
}

function factsOf(answer: CheckAnswer): Readonly<Record<string, unknown>> {
  return answer.decision === "none"
    ? { deviceId: answer.device.id, decision: answer.reason }
    : { deviceId: answer.device.id, decision: answer.how, attemptId: answer.attempt.id };
}
