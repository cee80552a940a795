import type { IncomingMessage } from "node:http";
import {
  type DeviceLine,
  EXISTING_DEVICES,
  type LineProblemCode,
  MAX_BULK_DEVICES,
  type RegisteredLine,
  registerDevices,
} from "@ota/domain";
import { z } from "zod";
import { discardRest, SENDER_IDLE_MS } from "../http/discard-rest.ts";
import { type FieldIssue, parseFields } from "../http/field-issues.ts";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { plainText, productNameSchema, serialSchema } from "../http/schemas.ts";
import { bodyText } from "../http/text-body.ts";
import { newDeviceFields } from "./device-view.ts";
import { csvLines, jsonLines, type ListLine } from "./list-lines.ts";

/** 1 600 bytes for each of the most devices: room for many attributes. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

const deviceSchema = z.strictObject({
  serial: serialSchema,
  ...newDeviceFields,
  token: plainText(256).optional(),
});

/** Registers a whole fleet by one request. The list is read as it comes, and written when it has come whole. */
export const deviceListRoute: RouteDefinition = defineRoute({
  method: "POST",
  path: "/v1/products/{product}/devices/bulk",
  operationId: "registerDevices",
  summary: "Register a list of devices, all or none",
  description: `
Up to ${MAX_BULK_DEVICES} devices in one body, as JSON lines or as CSV.

A line of JSON has the fields of a single registration, and may have a \`token\` that the device has from another server.
CSV names its columns in the first line: \`serial\`, \`channel\`, \`hardwareRevision\`, \`groups\` (separated by \`;\`),
\`timeZone\`, \`token\`, and \`attribute.<name>\`, whose values are texts. An empty field is left out.

The answer is in the same format, a line for each device in the same order: \`serial\`, \`id\`, \`outcome\` (\`registered\`,
\`updated\`, \`unchanged\` or \`skipped\`) and the \`token\` that was made, which is shown this once. Where a line is not valid,
nothing at all is registered, and \`LINES_INVALID\` tells each problem by its line.
`.trim(),
  tag: "Fleet",
  auth: "operator",
  request: {
    params: z.strictObject({ product: productNameSchema }),
    query: z.strictObject({
      existing: z
        .enum(EXISTING_DEVICES)
        .optional()
        .meta({
          description:
            "What becomes of a device that is there already. `refuse`: it is an error. `skip`: it stays as it is. `update`: " +
            "it takes what its line says; what the line leaves out stays.",
          override: { default: "refuse" },
        }),
    }),
    body: {
      kind: "stream",
      contentTypes: ["application/x-ndjson", "text/csv"],
      typeRequired: true,
      description: "The list, in UTF-8.",
    },
  },
  responses: {
    200: { description: "What became of each line", contentType: ["application/x-ndjson", "text/csv"] },
  },
  problems: ["NOT_FOUND", "LINES_INVALID", "BODY_TOO_LARGE", "SERVICE_BUSY"],
  async handler({ actor, params, query, raw, note }, { db }) {
    const format = formatOf(raw);
    let registered: readonly RegisteredLine[];
    try {
      raw.setTimeout(SENDER_IDLE_MS, () => raw.destroy());
      const lines = deviceLines(FORMATS[format].read(bodyText(raw, { maxBytes: MAX_BODY_BYTES })), format);
      registered = await registerDevices(db, { actor, ...params, ...query, lines });
      raw.setTimeout(0);
    } catch (error) {
      discardRest(raw);
      throw error;
    }
    note({ devices: registered.length });
    return {
      async stream(response) {
        response.writeHead(200, { "Content-Type": `${format}; charset=utf-8`, "Cache-Control": "no-store" });
        response.end(FORMATS[format].write(registered));
      },
    };
  },
});

type Format = "application/x-ndjson" | "text/csv";

const FORMATS = {
  "application/x-ndjson": { read: jsonLines, write: toJsonLines },
  "text/csv": { read: (text: AsyncIterable<string>) => csvLines(text, { required: "serial" }), write: toCsv },
};

/** That it is one of the two has been checked. */
function formatOf({ headers }: IncomingMessage): Format {
  return /^\s*text\/csv/i.test(headers["content-type"] ?? "") ? "text/csv" : "application/x-ndjson";
}

async function* deviceLines(lines: AsyncIterable<ListLine>, format: Format): AsyncGenerator<DeviceLine> {
  for await (const read of lines) {
    const { line } = read;
    if ("problem" in read) {
      yield { line, problems: [{ field: null, ...read.problem }] };
      continue;
    }
    const fields = format === "text/csv" ? ofColumns(read.fields as Readonly<Record<string, string>>) : read.fields;
    const parsed = parseFields(deviceSchema, fields);
    yield "data" in parsed ? { line, device: parsed.data } : { line, problems: parsed.issues.map(problemOf) };
  }
}

const ATTRIBUTE_COLUMN = "attribute.";

/** The fields of a line of CSV as a line of JSON would have them. */
function ofColumns(record: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  const { groups, ...columns } = record;
  const isAttribute = ([name]: [string, string]) => name.startsWith(ATTRIBUTE_COLUMN);
  const entries = Object.entries(columns);
  const attributes = entries.filter(isAttribute).map(([name, text]) => [name.slice(ATTRIBUTE_COLUMN.length), text]);
  return {
    ...Object.fromEntries(entries.filter((entry) => !isAttribute(entry))),
    ...(groups === undefined ? {} : { groups: groups.split(";") }),
    ...(attributes.length === 0 ? {} : { attributes: Object.fromEntries(attributes) }),
  };
}

function problemOf({ field, message, isUnknown }: FieldIssue) {
  const code: LineProblemCode = isUnknown ? "UNKNOWN_FIELD" : "INVALID_FIELD";
  return { field: field === "" ? null : field, code, message };
}

function toJsonLines(lines: readonly RegisteredLine[]): string {
  return lines.map(({ serial, id, outcome, token }) => `${JSON.stringify({ serial, id, outcome, token })}\n`).join("");
}

/** None of the values has a character that would have to be quoted. */
function toCsv(lines: readonly RegisteredLine[]): string {
  const rows = lines.map(({ serial, id, outcome, token }) => `${serial},${id},${outcome},${token ?? ""}\r\n`);
  return `serial,id,outcome,token\r\n${rows.join("")}`;
}
