import { ATTEMPT_STATES, REPORTED_STATES } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { attemptIdParamSchema, attemptIdSchema } from "../http/schemas.ts";

/** What is too long or out of range is cut when it is kept, never refused: the report may be a device's last word. */
const reportSchema = z
  .strictObject({
    state: z.enum(REPORTED_STATES).meta({ description: "How far the device is, or how it ended." }),
    progressPercent: z.number().optional().meta({ description: "0 to 100.", example: 40 }),
    message: z
      .string()
      .optional()
      .meta({ description: "For people; kept up to 1 000 characters.", example: "image written to slot B" }),
    details: z
      .array(z.string())
      .optional()
      .meta({ description: "More lines for people; the last 50 are kept, up to 500 characters each." }),
    code: z.number().optional().meta({ description: "A code of the device's own; kept where an int32 holds it." }),
    deviceTime: z.iso
      .datetime({ offset: true })
      .transform((text) => new Date(text))
      .optional()
      .meta({ description: "By the device's clock. Kept, and never used to order reports.", format: "date-time" }),
    version: z.string().min(1).optional().meta({ description: "The version that it runs now." }),
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
  async handler({ credentials, params, body, note }, { checks }) {
    const { attemptId } = params;
    const recorded = await checks.recordReport({ ...credentials, attemptId, report: body });
    note({ attemptId, reported: body.state, effect: recorded.effect });
    return { status: 200, body: recorded };
  },
});
