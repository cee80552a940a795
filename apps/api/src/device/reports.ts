import { ATTEMPT_STATES, REPORTED_STATES, type Report } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { attemptIdParamSchema, attemptIdSchema } from "../http/schemas.ts";

/** As much as over DDI. Clients send whole logs: what is kept of them is cut, but no last word is refused for its length. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

/** What a field is read as that holds something else than it should. */
const UNREADABLE = Symbol("unreadable");

/**
 * A field that holds data only: whatever is wrong with it never costs the report, which may be a device's last word. The
 * reference shows it as it should be.
 */
function dataField<Output>(
  schema: z.ZodType<Output>,
  meta: { readonly description: string; readonly example?: unknown },
) {
  const anything = z.unknown().transform((value) => (value === null ? undefined : UNREADABLE));
  return z
    .union([schema, anything])
    .optional()
    .meta({
      ...meta,
      override({ jsonSchema }) {
        const [wanted] = jsonSchema.anyOf ?? [];
        delete jsonSchema.anyOf;
        Object.assign(jsonSchema, wanted);
      },
    });
}

const time = z.iso.datetime({ offset: true });

/** What is too long or out of range is cut when it is kept. State and version have to be clear. */
const reportFields = z
  .looseObject({
    state: z.enum(REPORTED_STATES).meta({ description: "How far the device is, or how it ended." }),
    progressPercent: dataField(z.number(), { description: "0 to 100.", example: 40 }),
    message: dataField(z.string(), {
      ...{ description: "For people; kept up to 1 000 characters.", example: "image written to slot B" },
    }),
    details: dataField(z.array(z.unknown()).meta({ override: { items: { type: "string" } } }), {
      description: "More lines for people; the last 50 are kept, up to 500 characters each.",
    }),
    code: dataField(z.number(), { description: "A code of the device's own; kept where an int32 holds it." }),
    deviceTime: dataField(time.transform((text) => new Date(text)).meta({ type: "string", format: "date-time" }), {
      description: "By the device's clock. Kept, and never used to order reports.",
    }),
    version: z.string().nullish().meta({ description: "The version that it runs now." }),
  })
  .meta({ id: "Report" });

const reportSchema = reportFields.transform(reportOf);

/** What could be read of a report, and the names of what could not. */
function reportOf(fields: z.output<typeof reportFields>): Report {
  const { state, progressPercent, message, details, code, deviceTime, version, ...unknown } = fields;
  const unreadable = Object.keys(unknown);
  const read = <Value>(name: string, value: Value | typeof UNREADABLE): Value | undefined => {
    if (value !== UNREADABLE) return value as Value;
    unreadable.push(name);
    return undefined;
  };
  const lines = read("details", details);
  const texts = lines?.filter((line) => typeof line === "string");
  if (texts?.length !== lines?.length) unreadable.push("details");
  // No version is told by it: nothing that could be mistaken for one.
  if (version === "") unreadable.push("version");
  return {
    state,
    progressPercent: read("progressPercent", progressPercent),
    message: read("message", message),
    details: texts,
    code: read("code", code),
    deviceTime: read("deviceTime", deviceTime),
    version: version === null || version === "" ? undefined : version,
    unreadable,
  };
}

const recordedSchema = z
  .object({
    attempt: z.object({ id: attemptIdSchema, state: z.enum(ATTEMPT_STATES) }),
    effect: z.enum(["moved", "history", "repeated"]).meta({
      description:
        "`moved`: the attempt's state is another one now. `history`: kept, and changed nothing. `repeated`: it was known.",
    }),
    ignored: z
      .array(z.string())
      .optional()
      .meta({
        description:
          "Fields that are unknown, of a wrong type or not a value that can be kept, 20 at most: the report counts without " +
          "them. The history tells them too. Absent: nothing was left out.",
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
    "Send it again until it is answered: a repetition is recognised. What ends an attempt should be repeated the longest. " +
    "Only `state` and `version` are refused where they are not clear; of whatever else cannot be read the answer says " +
    "that it was `ignored`.",
  tag: "Devices",
  auth: "device",
  request: {
    params: z.strictObject({ attemptId: attemptIdParamSchema }),
    body: { kind: "json", schema: reportSchema, maxBytes: MAX_BODY_BYTES },
  },
  responses: { 200: { description: "Recorded", body: recordedSchema } },
  problems: ["NOT_FOUND", "ATTEMPT_CLOSED", "SERVICE_BUSY"],
  async handler({ credentials, params, body, note }, { checks }) {
    const { attemptId } = params;
    const recorded = await checks.recordReport({ ...credentials, attemptId, report: body });
    const { effect, ignored } = recorded;
    note({ attemptId, reported: body.state, effect, ...(ignored === undefined ? {} : { ignored }) });
    return { status: 200, body: recorded };
  },
});
