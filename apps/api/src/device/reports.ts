import { ATTEMPT_STATES, REPORTED_STATES } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { attemptIdParamSchema, attemptIdSchema, plainText } from "../http/schemas.ts";
import { reportedVersionSchema } from "./check.ts";

const MAX_INT32 = 2_147_483_647;

const reportSchema = z
  .strictObject({
    state: z.enum(REPORTED_STATES).meta({ description: "How far the device is, or how it ended." }),
    progressPercent: z.int().min(0).max(100).optional(),
    message: plainText(1024).optional().meta({ description: "For people.", example: "image written to slot B" }),
    details: z.array(plainText(1024)).max(32).optional().meta({ description: "More lines for people." }),
    code: z
      .int()
      .min(-MAX_INT32 - 1)
      .max(MAX_INT32)
      .optional()
      .meta({ description: "A code of the device's own." }),
    deviceTime: z.iso
      .datetime({ offset: true })
      .transform((text) => new Date(text))
      .optional()
      .meta({ description: "By the device's clock. Kept, and never used to order reports.", format: "date-time" }),
    version: reportedVersionSchema.optional().meta({ description: "The version that it runs now." }),
  })
  .meta({ id: "Report" });

const recordedSchema = z
  .object({
    attempt: z.object({ id: attemptIdSchema, state: z.enum(ATTEMPT_STATES) }),
    effect: z.enum(["moved", "history", "repeated"]).meta({
      description:
        "`moved`: the attempt's state is another one now. `history`: kept, and changed nothing. `repeated`: it was known.",
    }),
  })
  .meta({ id: "RecordedReport" });

/** The device's word about an attempt. A 2xx means that it is committed. */
export const reportRoute: RouteDefinition = defineRoute({
  method: "POST",
  path: "/v1/attempts/{attemptId}/reports",
  operationId: "reportAttempt",
  summary: "Report how an attempt goes",
  description:
    "Send it again until it is answered: a repetition is recognised. What ends an attempt should be repeated the longest.",
  tag: "Devices",
  auth: "device",
  request: {
    params: z.strictObject({ attemptId: attemptIdParamSchema }),
    body: { kind: "json", schema: reportSchema },
  },
  responses: { 200: { description: "Recorded", body: recordedSchema } },
  problems: ["NOT_FOUND", "ATTEMPT_CLOSED", "SERVICE_BUSY"],
  async handler({ tokenHash, params, body, note }, { checks }) {
    const { attemptId } = params;
    const recorded = await checks.recordReport({ tokenHash, attemptId, report: body });
    note({ attemptId, reported: body.state, effect: recorded.effect });
    return { status: 200, body: recorded };
  },
});
