import { type Database, deleteUnreferencedArtifact, unreferencedArtifacts } from "@ota/domain";
import type { ArtifactFile, ArtifactStore } from "./artifact-store.ts";
import { ABANDONED_AFTER_MS } from "./disk-artifact-store.ts";

/** What {@link collectGarbage} works on. */
export interface CollectOptions {
  readonly db: Database;
  readonly store: ArtifactStore;
  /** Younger files stay, whoever has them: they may belong to an upload that is about to be registered. */
  readonly minAgeMs: number;
  /** Says what would be deleted, and deletes nothing. @default false */
  readonly dryRun?: boolean | undefined;
  /** Ends the work between two files. */
  readonly signal?: AbortSignal | undefined;
}

/** What one collection has done, or would do. */
export interface Collected {
  readonly files: number;
  readonly deleted: number;
  readonly freedBytes: number;
  readonly abandonedUploads: number;
}

/** How many files are looked up in the database at once. */
const BATCH = 500;

/**
 * Deletes the artifacts that belong to no firmware, and what killed uploads have left. What is referenced is never
 * deleted: files are only marked by the first look into the database, and each one is looked at again, with its age, under
 * the lock that keeps registrations away (`deleteUnreferencedArtifact`). Any number of processes may collect at once, and
 * one that is killed leaves nothing to repair.
 */
export async function collectGarbage(options: CollectOptions): Promise<Collected> {
  const { store, signal, dryRun = false } = options;
  const total = { files: 0, deleted: 0, freedBytes: 0, abandonedUploads: 0 };
  for await (const batch of batches(store.list())) {
    total.files += batch.length;
    for (const file of await marked(batch, options)) {
      if (signal?.aborted) return total;
      if (!dryRun && (await sweep(file, options)) !== "deleted") continue;
      total.deleted += 1;
      total.freedBytes += file.sizeBytes;
    }
    if (signal?.aborted) return total;
  }
  if (!dryRun) total.abandonedUploads = await store.removeAbandonedUploads({ olderThanMs: ABANDONED_AFTER_MS });
  return total;
}

async function marked(batch: readonly ArtifactFile[], { db, minAgeMs }: CollectOptions): Promise<ArtifactFile[]> {
  const old = batch.filter((file) => isOld(file, minAgeMs));
  const unreferenced = new Set(
    await unreferencedArtifacts(
      db,
      old.map(({ sha256 }) => sha256),
    ),
  );
  return old.filter(({ sha256 }) => unreferenced.has(sha256));
}

/** The file may have been put again since it was marked: then it is young. */
function sweep({ sha256 }: ArtifactFile, { db, store, minAgeMs }: CollectOptions) {
  return deleteUnreferencedArtifact(db, {
    sha256,
    async remove() {
      const file = await store.stat(sha256);
      if (file === undefined) return "absent";
      return isOld(file, minAgeMs) ? store.delete(sha256) : "young";
    },
  });
}

function isOld({ storedAt }: ArtifactFile, minAgeMs: number): boolean {
  return Date.now() - storedAt.getTime() >= minAgeMs;
}

async function* batches(files: AsyncIterable<ArtifactFile>): AsyncGenerator<ArtifactFile[]> {
  let batch: ArtifactFile[] = [];
  for await (const file of files) {
    batch.push(file);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
