import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, opendir, rename, rm, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import {
  ArtifactError,
  type ArtifactFile,
  type ArtifactKey,
  type ArtifactStore,
  type ByteRange,
  type PutOptions,
  type StoredArtifact,
} from "./artifact-store.ts";
import { checkFolder, claimFolder } from "./installation-marker.ts";
import { receiveUpload } from "./receive-upload.ts";
import { removeAbandonedUploads, TEMPORARY_SUFFIX } from "./temporary-file.ts";

/** Every chunk of an upload renews its file's time, so one that has been still for so long has no sender any more. */
export const ABANDONED_AFTER_MS = 60 * 60 * 1000;

const ARTIFACT_NAME = /^[0-9a-f]{64}$/;

/** Where a {@link DiskArtifactStore} lives and whose it is. */
export interface DiskArtifactStoreOptions {
  /** Made if it is absent. Several processes of one installation may share it. */
  readonly directory: string;
  /** The id in the database; the folder's marker must carry the same one. */
  readonly installationId: string;
  /**
   * Whether the database knows artifacts that must be in the folder: then one without a marker is refused, since it is an
   * empty disk or the wrong one. @default false
   */
  readonly expectsArtifacts?: boolean;
  /** @default one hour */
  readonly abandonedAfterMs?: number;
}

/**
 * An {@link ArtifactStore} in one flat folder: each file is named by its SHA-256, and written beside its final place so
 * that publishing is one atomic rename. Safe for any number of processes on the same folder.
 */
export class DiskArtifactStore implements ArtifactStore {
  readonly #directory: string;
  readonly #installationId: string;

  private constructor({ directory, installationId }: DiskArtifactStoreOptions) {
    this.#directory = directory;
    this.#installationId = installationId;
  }

  /**
   * Makes the folder if need be, checks that it is this installation's, and removes what a crash has left in it.
   *
   * @throws {ArtifactError} `ARTIFACT_DIR_REFUSED`: see {@link claimFolder}.
   */
  static async open(options: DiskArtifactStoreOptions): Promise<DiskArtifactStore> {
    await mkdir(options.directory, { recursive: true, mode: 0o750 });
    await claimFolder(options.directory, options);
    await removeAbandonedUploads(options.directory, { olderThanMs: options.abandonedAfterMs ?? ABANDONED_AFTER_MS });
    return new DiskArtifactStore(options);
  }

  async put(source: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredArtifact> {
    const temporary = join(this.#directory, `${randomUUID()}${TEMPORARY_SUFFIX}`);
    try {
      const stored = await this.#write(source, { ...options, path: temporary });
      await rename(temporary, this.#path(stored.sha256));
      await syncDirectory(this.#directory);
      return stored;
    } catch (error) {
      await rm(temporary, { force: true });
      throw isDiskFull(error) ? storageFull(error) : error;
    }
  }

  async open(artifact: ArtifactKey, range?: ByteRange): Promise<Readable> {
    const file = await this.#openWhole(artifact);
    return file.createReadStream(range === undefined ? {} : { start: range.start, end: range.end });
  }

  async stat(sha256: string): Promise<ArtifactFile | undefined> {
    const found = await ifPresent(stat(this.#path(sha256)));
    // An upload's last chunk gave the file its time, and its rename has replaced what was there before.
    return found === undefined ? undefined : { sha256, sizeBytes: found.size, storedAt: found.mtime };
  }

  async *list(): AsyncGenerator<ArtifactFile> {
    for await (const { name } of await opendir(this.#directory)) {
      const file = ARTIFACT_NAME.test(name) ? await this.stat(name) : undefined;
      if (file !== undefined) yield file;
    }
  }

  /** A folder that is there and lost its marker is most likely the mount point of a disk that is not. */
  async probe(): Promise<void> {
    await checkFolder(this.#directory, this.#installationId);
  }

  async delete(sha256: string): Promise<"deleted" | "absent"> {
    const removed = await ifPresent(unlink(this.#path(sha256)).then(() => true));
    if (removed === undefined) return "absent";
    await syncDirectory(this.#directory);
    return "deleted";
  }

  removeAbandonedUploads(options: { readonly olderThanMs: number }): Promise<number> {
    return removeAbandonedUploads(this.#directory, options);
  }

  async #write(
    source: AsyncIterable<Uint8Array>,
    options: PutOptions & { readonly path: string },
  ): Promise<StoredArtifact> {
    const file = await open(options.path, "wx", 0o640);
    try {
      const stored = await receiveUpload(source, file, options);
      await file.sync();
      return stored;
    } finally {
      await file.close();
    }
  }

  async #openWhole(artifact: ArtifactKey): Promise<FileHandle> {
    const file = await ifPresent(open(this.#path(artifact.sha256), "r"));
    if (file === undefined) throw missing(artifact, "it is not there");
    const { size } = await file.stat();
    if (size === artifact.sizeBytes) return file;
    await file.close();
    throw missing(artifact, `it has ${size} bytes instead of ${artifact.sizeBytes}`);
  }

  #path(sha256: string): string {
    // The name becomes part of a path, so nothing but a hash may pass, whatever the caller has checked.
    if (!ARTIFACT_NAME.test(sha256)) throw new RangeError("An artifact is named by 64 lower-case hexadecimal digits.");
    return join(this.#directory, sha256);
  }
}

/** Makes a rename or removal in the folder durable. Windows can't open a folder, and has no need to. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function ifPresent<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOSPC" || code === "EDQUOT";
}

function storageFull(cause: unknown): ArtifactError {
  return new ArtifactError("STORAGE_FULL", "There is no room left for this artifact. Nothing was stored.", { cause });
}

function missing({ sha256 }: ArtifactKey, what: string): ArtifactError {
  return new ArtifactError("ARTIFACT_MISSING", `The artifact ${sha256} is not usable: ${what}.`, {
    details: { sha256 },
  });
}
