import type { Readable } from "node:stream";

/**
 * Where the bytes of firmware live: immutable files named by their own SHA-256. The contract is small so that an object
 * store can fill it; who may have which artifact, and under what file name, is not its business.
 *
 * What every store guarantees: a file is either there whole, with exactly the bytes of its name, or not there at all;
 * putting the same bytes twice, also at the same time, is harmless; a `put` that fails leaves nothing behind.
 */
export interface ArtifactStore {
  /**
   * Takes `source` to its end, hashing on the way, and publishes it under its SHA-256. The store is done with a chunk
   * before it asks for the next one, so memory use is independent of the size. When the promise resolves the bytes are
   * durable.
   *
   * @throws {ArtifactError} with a code of {@link ArtifactErrorCode}, as soon as it is certain that the upload can't be
   * accepted; an error of the source is `UPLOAD_INCOMPLETE`.
   */
  put(source: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredArtifact>;

  /**
   * Opens the bytes for reading, all of them or one range. Its chunks are the reader's own, to change or free. Destroying
   * the stream frees what it holds.
   *
   * @throws {ArtifactError} `ARTIFACT_MISSING` if there is no such file or its size is not the one expected.
   */
  open(artifact: ArtifactKey, range?: ByteRange): Promise<Readable>;

  /** What is there under this name; `undefined`: nothing. */
  stat(sha256: string): Promise<ArtifactFile | undefined>;

  /** Everything that is there, in any order. What comes or goes meanwhile may be among it or not. */
  list(): AsyncIterable<ArtifactFile>;

  /**
   * Resolves when the store could take and give artifacts now.
   *
   * @throws whatever keeps it from that.
   */
  probe(): Promise<void>;

  /** Removes the artifact. Removing what is not there is not an error: the answer tells. Open streams go on to their end. */
  delete(sha256: string): Promise<"deleted" | "absent">;

  /**
   * Frees what uploads have left that were killed in the middle, where nothing has come for `olderThanMs`: younger ones
   * may be in progress. Returns how many there were.
   */
  removeAbandonedUploads(options: { readonly olderThanMs: number }): Promise<number>;
}

/** Whether the store holds an artifact, with the size that it must have. */
export async function holdsArtifact(store: ArtifactStore, { sha256, sizeBytes }: ArtifactKey): Promise<boolean> {
  return (await store.stat(sha256))?.sizeBytes === sizeBytes;
}

/** What finds an artifact, and what it must look like when found. */
export interface ArtifactKey {
  /** Lower-case hexadecimal, 64 characters. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

/** An artifact as it lies in a store. */
export interface ArtifactFile extends ArtifactKey {
  /** When it was put there last, also if it was there before, by the store's clock. */
  readonly storedAt: Date;
}

/** What a store learns from the bytes themselves. Hashes are lower-case hexadecimal. */
export interface StoredArtifact extends ArtifactKey {
  /** For clients that know nothing newer (hawkBit DDI); never relied on here. */
  readonly sha1: string;
  /** As `sha1`. */
  readonly md5: string;
}

/** A contiguous part of an artifact. Both ends are offsets of bytes that are included, as in HTTP. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** What an upload must keep to. */
export interface PutOptions {
  /** More bytes than this are refused as soon as they are seen. */
  readonly maxSizeBytes: number;
  /** What the bytes must add up to, where the sender has said so. */
  readonly expected?: { readonly sizeBytes?: number | undefined; readonly sha256?: string | undefined };
}

/** The stable codes of {@link ArtifactError}. */
export type ArtifactErrorCode =
  /** More bytes than the limit. */
  | "ARTIFACT_TOO_LARGE"
  /** Not a single byte: never what an uploader meant. */
  | "ARTIFACT_EMPTY"
  /** The bytes that came are not the number announced. */
  | "ARTIFACT_SIZE_MISMATCH"
  /** The bytes that came are not the ones announced. */
  | "ARTIFACT_SHA256_MISMATCH"
  /** The sender stopped, or was cut off, before the end. */
  | "UPLOAD_INCOMPLETE"
  /** No room for it (disk or quota). */
  | "STORAGE_FULL"
  /** The database knows the artifact, the store does not hold it. */
  | "ARTIFACT_MISSING"
  /** The folder can't be this installation's store; the service must not start. */
  | "ARTIFACT_DIR_REFUSED";

/** Any expected failure of an {@link ArtifactStore}. Everything else that a store throws is a fault of the disk below. */
export class ArtifactError extends Error {
  readonly code: ArtifactErrorCode;
  /** Facts for the one who is told: limits, sizes, hashes. Never a path. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ArtifactErrorCode,
    message: string,
    context?: { readonly details?: Readonly<Record<string, unknown>>; readonly cause?: unknown },
  ) {
    super(message, context?.cause === undefined ? undefined : { cause: context.cause });
    this.name = "ArtifactError";
    this.code = code;
    this.details = context?.details ?? {};
  }
}
