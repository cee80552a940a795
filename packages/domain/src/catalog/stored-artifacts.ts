import { and, eq, inArray, isNull } from "drizzle-orm";
import type { Database } from "../database.ts";
import { ServiceBusyError } from "../errors.ts";
import { firmware, installation } from "../schema/index.ts";

/** Whether any firmware's file must be in the service's own store. */
export async function hasStoredArtifacts(db: Database): Promise<boolean> {
  const rows = await db.select({ id: firmware.id }).from(firmware).where(isNull(firmware.sourceUrl)).limit(1);
  return rows.length > 0;
}

/**
 * Which of these files, by their SHA-256, belong to no firmware, whatever its state. It may change at any moment: see
 * `deleteUnreferencedArtifact`. One statement, whose rows are found by an index.
 */
export async function unreferencedArtifacts(db: Database, sha256s: readonly string[]): Promise<string[]> {
  if (sha256s.length === 0) return [];
  const rows = await db
    .selectDistinct({ sha256: firmware.sha256 })
    .from(firmware)
    .where(and(inArray(firmware.sha256, [...sha256s]), isNull(firmware.sourceUrl)));
  const referenced = new Set(rows.map(({ sha256 }) => sha256));
  return sha256s.filter((sha256) => !referenced.has(sha256));
}

/**
 * Runs `remove` if no firmware has the file, and while none can be registered with it: whoever registers one looks into
 * the store under the same lock. Answers what `remove` has answered, or `referenced`. Should the process die in the
 * middle, the file is either there or it is not, and no firmware has it in both cases.
 */
export async function deleteUnreferencedArtifact<Outcome>(
  db: Database,
  input: { readonly sha256: string; readonly remove: () => Promise<Outcome> },
): Promise<Outcome | "referenced"> {
  return db.transaction(async (tx) => {
    await tx.select({ only: installation.only }).from(installation).for("update");
    const [found] = await tx
      .select({ id: firmware.id })
      .from(firmware)
      .where(and(eq(firmware.sha256, input.sha256), isNull(firmware.sourceUrl)))
      .limit(1);
    return found === undefined ? input.remove() : "referenced";
  });
}

/** Keeps everything in the store until the transaction ends. Any number of registrations hold it at once. */
export async function holdStoredArtifacts(tx: Database): Promise<void> {
  await tx.select({ only: installation.only }).from(installation).for("share");
}

/** The file of an upload was deleted between its arrival and its registration. */
export function uploadLost(): ServiceBusyError {
  return new ServiceBusyError(
    "The file was cleared away as one that nobody uses, just before it was registered. Upload it again.",
    { retryAfterSeconds: 1 },
  );
}
