import { and, desc, eq, gte, isNull, lt } from "drizzle-orm";
import type { Database } from "./database.ts";
import { invalidField, requireOneOf, requireText } from "./fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "./pages.ts";
import { isPublicId, newPublicId } from "./public-id.ts";
import type { AuditFacts } from "./schema/audit-log.ts";
import { auditLog } from "./schema/index.ts";
import { AUDIT_ACTIONS, type AuditAction } from "./vocabulary.ts";

/** Who changes something. */
export type Actor =
  | {
      readonly kind: "operator";
      /** The operator key's public id. */
      readonly keyId: string;
      readonly name: string;
    }
  | { readonly kind: "system" };

/** One change: who did what to whom, and what was different before. */
export interface AuditEntry {
  readonly id: string;
  readonly at: Date;
  readonly actor: Actor;
  readonly action: AuditAction;
  /** The public id of what was changed; a product's is its name. */
  readonly subjectId: string;
  /** `null` where it was made by this. */
  readonly before: AuditFacts | null;
  readonly after: AuditFacts | null;
}

/** Which changes are listed: those that fit everything that is given. */
export interface AuditFilter {
  readonly subjectId?: string | undefined;
  /** An operator key's public id, also of one that is revoked; `system`: what the service did by itself. */
  readonly actor?: string | undefined;
  readonly action?: AuditAction | undefined;
  /** At this time or later. */
  readonly since?: Date | undefined;
  /** Before this time. */
  readonly until?: Date | undefined;
}

/** Lists changes, newest first. Throws INVALID_FIELD and INVALID_CURSOR. */
export async function listAudit(db: Database, input: PageRequest & AuditFilter): Promise<Page<AuditEntry>> {
  const window = pageWindow("audit", input);
  const { subjectId, actor, action, since, until } = input;
  if (subjectId !== undefined) requireText("subjectId", subjectId);
  if (action !== undefined) requireOneOf("action", action, AUDIT_ACTIONS);
  const rows = await db
    .select()
    .from(auditLog)
    .where(
      and(
        lt(auditLog.id, window.beforeId),
        subjectId === undefined ? undefined : eq(auditLog.subjectId, subjectId),
        actor === undefined ? undefined : ofActor(actor),
        action === undefined ? undefined : eq(auditLog.action, action),
        since === undefined ? undefined : gte(auditLog.at, since),
        until === undefined ? undefined : lt(auditLog.at, until),
      ),
    )
    .orderBy(desc(auditLog.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: (row) => row.id, toItem: toAuditEntry });
}

/** A change to be written. */
export type NewAuditEntry = Pick<AuditEntry, "actor" | "action" | "subjectId"> &
  Partial<Pick<AuditEntry, "before" | "after">>;

/** Writes the row of one change. It belongs into the transaction of the change: both are kept, or neither. */
export async function recordAudit(tx: Database, entry: NewAuditEntry): Promise<void> {
  await recordAudits(tx, [entry]);
}

/** As {@link recordAudit}, for up to some thousands of changes at once. */
export async function recordAudits(tx: Database, entries: readonly NewAuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await tx.insert(auditLog).values(
    entries.map(({ actor, action, subjectId, before = null, after = null }) => ({
      publicId: newPublicId(),
      actorKind: actor.kind,
      actorKeyId: actor.kind === "operator" ? actor.keyId : null,
      actorName: actor.kind === "operator" ? actor.name : null,
      ...{ action, subjectId, before, after },
    })),
  );
}

/** The service's own changes have no key; by the null they are found in the same index. */
function ofActor(actor: string) {
  if (actor === "system") return isNull(auditLog.actorKeyId);
  if (!isPublicId(actor)) invalidField("actor", "an operator key's id, or system");
  return eq(auditLog.actorKeyId, actor);
}

function toAuditEntry(row: typeof auditLog.$inferSelect): AuditEntry {
  const { publicId: id, at, actorKeyId, actorName, action, subjectId, before, after } = row;
  const actor: Actor =
    actorKeyId === null || actorName === null
      ? { kind: "system" }
      : { kind: "operator", keyId: actorKeyId, name: actorName };
  return { id, at, actor, action, subjectId, before, after };
}
