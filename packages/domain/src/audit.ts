import { and, desc, eq, lt } from "drizzle-orm";
import type { Database } from "./database.ts";
import { requireText } from "./fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "./pages.ts";
import { newPublicId } from "./public-id.ts";
import type { AuditFacts } from "./schema/audit-log.ts";
import { auditLog } from "./schema/index.ts";
import type { AuditAction } from "./vocabulary.ts";

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

/** Lists changes, newest first: all, or those of one subject. */
export async function listAudit(
  db: Database,
  input: PageRequest & { readonly subjectId?: string | undefined },
): Promise<Page<AuditEntry>> {
  const window = pageWindow("audit", input);
  if (input.subjectId !== undefined) requireText("subjectId", input.subjectId);
  const rows = await db
    .select()
    .from(auditLog)
    .where(
      and(
        lt(auditLog.id, window.beforeId),
        input.subjectId === undefined ? undefined : eq(auditLog.subjectId, input.subjectId),
      ),
    )
    .orderBy(desc(auditLog.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: (row) => row.id, toItem: toAuditEntry });
}

/** Writes the row of one change. It belongs into the transaction of the change: both are kept, or neither. */
export async function recordAudit(
  tx: Database,
  entry: Pick<AuditEntry, "actor" | "action" | "subjectId"> & Partial<Pick<AuditEntry, "before" | "after">>,
): Promise<void> {
  const { actor } = entry;
  await tx.insert(auditLog).values({
    publicId: newPublicId(),
    actorKind: actor.kind,
    actorKeyId: actor.kind === "operator" ? actor.keyId : null,
    actorName: actor.kind === "operator" ? actor.name : null,
    action: entry.action,
    subjectId: entry.subjectId,
    before: entry.before ?? null,
    after: entry.after ?? null,
  });
}

function toAuditEntry(row: typeof auditLog.$inferSelect): AuditEntry {
  const { publicId: id, at, actorKeyId, actorName, action, subjectId, before, after } = row;
  const actor: Actor =
    actorKeyId === null || actorName === null
      ? { kind: "system" }
      : { kind: "operator", keyId: actorKeyId, name: actorName };
  return { id, at, actor, action, subjectId, before, after };
}
