import { and, asc, desc, eq, isNull, lt, sql } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { invalidField, requireText } from "../fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId, newPublicId } from "../public-id.ts";
import { operatorKeys } from "../schema/index.ts";
import { hashToken, newToken } from "../tokens.ts";

/** A key by which the operators' API may be used. The secret itself is stored nowhere. */
export interface OperatorKey {
  /** Its public id. */
  readonly id: string;
  /** Who or what uses it; it is written into the audit log. */
  readonly name: string;
  readonly createdAt: Date;
  /** Since when it is refused; `null`: it is live. */
  readonly revokedAt: Date | null;
}

/** 128 bits in base64url: what a key from outside must have at the least, since it is stored as a plain hash. */
const MIN_KEY_LENGTH = 22;
const MAX_KEY_LENGTH = 256;

/** Makes an operator key with a secret of its own, which is shown this once. Throws INVALID_FIELD. */
export async function createOperatorKey(
  db: Database,
  input: { readonly actor: Actor; readonly name: string },
): Promise<{ readonly operatorKey: OperatorKey; readonly key: string }> {
  requireText("name", input.name);
  const key = newToken();
  return db.transaction(async (tx) => {
    const operatorKey = await insertKey(tx, { ...input, key });
    if (operatorKey === undefined) throw new Error("256 random bits were drawn twice: the random source is broken.");
    return { operatorKey, key };
  });
}

/**
 * Makes sure that a key chosen outside, such as one from the environment, is known. Whoever calls it again, or at the same
 * time in another process, gets the same key; a revoked one stays revoked, which the caller must look at.
 * Throws INVALID_FIELD where the key is too short to be safe.
 */
export async function ensureOperatorKey(
  db: Database,
  input: {
    readonly name: string;
    /** 22 to 256 printable ASCII characters without spaces: at least 128 random bits. */
    readonly key: string;
  },
): Promise<OperatorKey> {
  requireText("name", input.name);
  if (!isAcceptableKey(input.key)) {
    const expected = `${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} printable ASCII characters without spaces`;
    invalidField("key", `${expected}, drawn at random such as by "openssl rand -base64 32"`);
  }
  return db.transaction(async (tx) => {
    const created = await insertKey(tx, { actor: { kind: "system" }, ...input });
    if (created !== undefined) return created;
    const [row] = await tx
      .select()
      .from(operatorKeys)
      .where(eq(operatorKeys.keyHash, hashToken(input.key)));
    if (row === undefined) throw new Error("The operator key was there and is gone: somebody deletes from the table.");
    return toOperatorKey(row);
  });
}

/** Lists operator keys, newest first, the revoked ones too. */
export async function listOperatorKeys(db: Database, input: PageRequest): Promise<Page<OperatorKey>> {
  const window = pageWindow("operator_keys", input);
  const rows = await db
    .select()
    .from(operatorKeys)
    .where(lt(operatorKeys.id, window.beforeId))
    .orderBy(desc(operatorKeys.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: (row) => row.id, toItem: toOperatorKey });
}

/**
 * Revokes an operator key: it is refused from the commit on. Revoking it again changes nothing.
 * Throws NOT_FOUND, or LAST_OPERATOR_KEY where no other live key would be left, also when several are revoked at once.
 */
export async function revokeOperatorKey(
  db: Database,
  input: { readonly actor: Actor; readonly operatorKeyId: string },
): Promise<OperatorKey> {
  const { actor, operatorKeyId } = input;
  if (!isPublicId(operatorKeyId)) throw notFound();
  return db.transaction(async (tx) => {
    // All live keys, in one order for everybody: two calls that revoke the last two keys come one after the other.
    const live = await tx
      .select()
      .from(operatorKeys)
      .where(isNull(operatorKeys.revokedAt))
      .orderBy(asc(operatorKeys.id))
      .for("no key update");
    const [found] = await tx.select().from(operatorKeys).where(eq(operatorKeys.publicId, operatorKeyId));
    if (found === undefined) throw notFound();
    if (found.revokedAt !== null) return toOperatorKey(found);
    if (!live.some((other) => other.id !== found.id)) {
      throw new OtaError("LAST_OPERATOR_KEY", "This is the last live operator key. Create another one first.");
    }
    const [row] = await tx
      .update(operatorKeys)
      .set({ revokedAt: sql`now()` })
      .where(eq(operatorKeys.id, found.id))
      .returning();
    await recordAudit(tx, {
      actor,
      action: "operator_key.revoke",
      subjectId: found.publicId,
      before: { name: found.name, revoked: false },
      after: { name: found.name, revoked: true },
    });
    return toOperatorKey(row ?? found);
  });
}

/** Tells whose key it is. One look-up by hash. Throws OPERATOR_KEY_INVALID on an unknown or revoked key. */
export async function authenticateOperator(db: Database, input: { readonly key: string }): Promise<Actor> {
  const [row] = await db
    .select({ keyId: operatorKeys.publicId, name: operatorKeys.name })
    .from(operatorKeys)
    .where(and(eq(operatorKeys.keyHash, hashToken(input.key)), isNull(operatorKeys.revokedAt)));
  if (row === undefined)
    throw new OtaError(
      "OPERATOR_KEY_INVALID",
      "The operator key is unknown or revoked. A device's token is no operator key.",
    );
  return { kind: "operator", ...row };
}

/** `undefined`: there is a key with this secret already. */
async function insertKey(
  tx: Database,
  input: { readonly actor: Actor; readonly name: string; readonly key: string },
): Promise<OperatorKey | undefined> {
  const [row] = await tx
    .insert(operatorKeys)
    .values({ publicId: newPublicId(), name: input.name, keyHash: hashToken(input.key) })
    .onConflictDoNothing()
    .returning();
  if (row === undefined) return undefined;
  await recordAudit(tx, {
    actor: input.actor,
    action: "operator_key.create",
    subjectId: row.publicId,
    after: { name: row.name },
  });
  return toOperatorKey(row);
}

function isAcceptableKey(key: string): boolean {
  return key.length >= MIN_KEY_LENGTH && key.length <= MAX_KEY_LENGTH && /^[!-~]+$/.test(key);
}

function toOperatorKey(row: typeof operatorKeys.$inferSelect): OperatorKey {
  return { id: row.publicId, name: row.name, createdAt: row.createdAt, revokedAt: row.revokedAt };
}

function notFound(): OtaError {
  return new OtaError("NOT_FOUND", "There is no such operator key.");
}
