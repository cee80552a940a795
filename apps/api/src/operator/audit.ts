import { AUDIT_ACTIONS, type AuditEntry, listAudit } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { plainText, publicIdSchema, timeSchema } from "../http/schemas.ts";
import { rolloutFacts } from "./audit-facts.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";

const facts = z.record(z.string(), z.unknown()).nullable();

const auditEntrySchema = z
  .object({
    id: publicIdSchema,
    at: timeSchema,
    actor: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("operator"), keyId: publicIdSchema, name: z.string() }),
      z.object({ kind: z.literal("system") }),
    ]),
    action: z.enum(AUDIT_ACTIONS),
    subjectId: z.string().meta({ description: "The id of what was changed; a product's is its name." }),
    before: facts.meta({ description: "null where it was made by this." }),
    after: facts,
  })
  .meta({ id: "AuditEntry" });

/** The audit log: who changed what, and how it was before. */
export const auditRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "GET",
    path: "/v1/audit",
    operationId: "listAudit",
    summary: "List changes, newest first",
    tag: "Audit",
    auth: "operator",
    request: {
      query: z.strictObject({
        subjectId: plainText(128).min(1).optional().meta({ description: "Only the changes of this one." }),
        actor: z
          .union([z.literal("system"), publicIdSchema])
          .optional()
          .meta({ description: "Only what this operator key has changed, or `system`, the service itself." }),
        action: z.enum(AUDIT_ACTIONS).optional().meta({ description: "Only changes of this kind." }),
        since: timeSchema.optional().meta({ description: "Only changes at this time or later." }),
        until: timeSchema.optional().meta({ description: "Only changes before this time." }),
        ...pageFields,
      }),
    },
    responses: { 200: { description: "A page of changes", body: pageSchema(auditEntrySchema) } },
    problems: ["INVALID_CURSOR"],
    async handler({ query }, { db }) {
      const { since, until, ...rest } = query;
      const filter = { ...rest, since: momentOf(since), until: momentOf(until) };
      return { status: 200, body: pageBody(await listAudit(db, filter), auditEntryView) };
    },
  }),
];

function momentOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

function auditEntryView({ id, at, actor, action, subjectId, before, after }: AuditEntry) {
  const shown = (facts: AuditEntry["after"]) =>
    facts !== null && action.startsWith("rollout.") ? rolloutFacts(facts) : facts;
  return { id, at: at.toISOString(), actor, action, subjectId, before: shown(before), after: shown(after) };
}
