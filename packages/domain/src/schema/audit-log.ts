import { check, index, jsonb, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { ACTOR_KINDS, AUDIT_ACTIONS } from "../vocabulary.ts";
import { internalId, moment, oneOf } from "./columns.ts";

/** Facts of a subject as they are written to JSON. Secrets and their hashes never belong here. */
export type AuditFacts = Readonly<Record<string, AuditValue>>;

/** Anything that JSON can say. */
export type AuditValue =
  | string
  | number
  | boolean
  | null
  | readonly AuditValue[]
  | { readonly [name: string]: AuditValue };

/**
 * Who changed what, with the values before and after. Rows are added in the transaction of the change: a trigger
 * refuses to change one, and to delete one but for the retention that operators ask for.
 */
export const auditLog = pgTable(
  "audit_log",
  {
    id: internalId("id").primaryKey(),
    publicId: uuid("public_id").notNull(),
    at: moment("at").notNull().defaultNow(),
    actorKind: text("actor_kind", { enum: ACTOR_KINDS }).notNull(),
    /** The operator key's public id; none: the service itself. */
    actorKeyId: uuid("actor_key_id"),
    /** The key's name at that time. */
    actorName: text("actor_name"),
    /** What was done, as `subject.verb`. */
    action: text("action", { enum: AUDIT_ACTIONS }).notNull(),
    /** The public id of what was changed; a product's is its name. */
    subjectId: text("subject_id").notNull(),
    before: jsonb("before").$type<AuditFacts>(),
    after: jsonb("after").$type<AuditFacts>(),
  },
  (table) => [
    // One for each filter of the list: rows are read from the newest on.
    index("audit_log_subject_id_id_index").on(table.subjectId, table.id),
    index("audit_log_actor_key_id_id_index").on(table.actorKeyId, table.id),
    index("audit_log_action_id_index").on(table.action, table.id),
    // Where a time's ids begin and end.
    index("audit_log_at_index").on(table.at),
    check("audit_log_actor_kind_check", oneOf(table.actorKind, ACTOR_KINDS)),
  ],
);
