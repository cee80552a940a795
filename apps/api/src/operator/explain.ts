import {
  EXCLUSIONS,
  type Explanation,
  explainDevice,
  LIVE_ATTEMPT_STATES,
  NONE_REASONS,
  ROLLOUT_STATES,
} from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { attemptIdSchema, productNameSchema, publicIdSchema, timeSchema } from "../http/schemas.ts";

const firmwareRefSchema = z.object({ firmwareId: publicIdSchema, version: z.string() });

const explanationSchema = z
  .object({
    device: z.object({
      id: publicIdSchema,
      serial: z.string(),
      product: productNameSchema,
      channel: z.string(),
      hardwareRevision: z.string().nullable(),
      groups: z.array(z.string()),
      attributes: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
      timeZone: z.string().meta({ description: "By whose clock its windows open: its own, or the product's." }),
      blocked: z.boolean(),
      reportedVersion: z.string().nullable(),
      confirmedVersion: z.string().nullable(),
      runs: z
        .discriminatedUnion("known", [
          z.object({ known: z.literal("version"), version: z.string() }),
          z.object({ known: z.literal("unknown") }),
          z.object({ known: z.literal("invalid") }),
        ])
        .meta({
          description:
            "What the device is taken to run: a version; unknown, where nothing was ever reported; or invalid.",
        }),
    }),
    decision: z.discriminatedUnion("decision", [
      z.object({ decision: z.literal("update"), ...firmwareRefSchema.shape }),
      z.object({ decision: z.literal("none"), reason: z.enum(NONE_REASONS) }),
    ]),
    advice: z
      .string()
      .nullable()
      .meta({ description: "What an operator can do about a decision of none, for people to read; null: an update." }),
    live: z
      .object({
        attemptId: attemptIdSchema,
        upgradeId: publicIdSchema,
        state: z.enum(LIVE_ATTEMPT_STATES),
        version: z.string(),
      })
      .nullable()
      .meta({ description: "The open attempt." }),
    candidates: z
      .array(
        z.object({
          rolloutId: publicIdSchema,
          rolloutState: z.enum(ROLLOUT_STATES),
          channel: z.string(),
          priority: z.int(),
          target: firmwareRefSchema.meta({ description: "The firmware that the rollout is for." }),
          offers: firmwareRefSchema.meta({
            description: "What the device would get: the target, or a step towards it.",
          }),
          upgradeId: publicIdSchema.nullable().meta({
            description: "The upgrade of the device and that firmware, to cancel or reset; null: it was never offered.",
          }),
          attempts: z.int().meta({ description: "On the record of the device and that firmware, so far." }),
          reason: z.enum(NONE_REASONS).nullable().meta({ description: "Why it is not offered; null: it could be." }),
          excludedBy: z.enum(EXCLUSIONS).nullable().meta({
            description: "With `NOT_IN_ROLLOUT`: the first of the rollout's terms that leaves the device out.",
          }),
          inAbovePercentage: z.number().min(0).max(99.99).meta({
            description:
              "The device's bucket in this rollout: with any greater percentage it is in. On the allow-list it always is.",
          }),
          opensAt: timeSchema.nullable().meta({
            description:
              "When a closed window opens, or the pause between attempts ends; null: that is not the reason.",
          }),
        }),
      )
      .meta({ description: "Every rollout that is no draft, best first." }),
  })
  .meta({ id: "Explanation" });

/** Why a device gets what it gets: the answer to the question that every operator has. */
export const explainRoute: RouteDefinition = defineRoute({
  method: "GET",
  path: "/v1/devices/{deviceId}/explanation",
  operationId: "explainDevice",
  summary: "Explain what a device gets and why",
  description:
    "Decides as a check by this device would now, by the same rules on the same data, and gives every candidate with the " +
    "reason why it is not offered. Nothing is changed.",
  tag: "Fleet",
  auth: "operator",
  request: { params: z.strictObject({ deviceId: publicIdSchema }) },
  responses: { 200: { description: "The decision with its reasons", body: explanationSchema } },
  problems: ["NOT_FOUND"],
  async handler({ params }, { db }) {
    return { status: 200, body: explanationView(await explainDevice(db, params)) };
  },
});

function explanationView({
  device,
  decision,
  advice,
  live,
  candidates,
}: Explanation): z.input<typeof explanationSchema> {
  const { runs } = device;
  return {
    device: {
      ...device,
      groups: [...device.groups],
      attributes: { ...device.attributes },
      runs: typeof runs === "string" ? { known: runs } : { known: "version", ...runs },
    },
    decision,
    advice: advice ?? null,
    live: live ?? null,
    candidates: candidates.map(({ upgradeId, reason, excludedBy, bucket, opensAt, ...candidate }) => ({
      ...candidate,
      upgradeId: upgradeId ?? null,
      reason: reason ?? null,
      excludedBy: excludedBy ?? null,
      inAbovePercentage: bucket / 100,
      opensAt: opensAt?.toISOString() ?? null,
    })),
  };
}
