import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { ArtifactError, type PutOptions, type StoredArtifact } from "./artifact-store.ts";

/**
 * Writes `source` to `file` chunk by chunk, hashing on the way, and checks it against what was announced. The next chunk
 * is read only when the last one is written, so a slow disk slows the sender down instead of filling memory.
 *
 * @throws {ArtifactError} as soon as it is certain that the upload can't be accepted. Faults of the file pass through.
 */
export async function receiveUpload(
  source: AsyncIterable<Uint8Array>,
  file: FileHandle,
  options: PutOptions,
): Promise<StoredArtifact> {
  const { maxSizeBytes, expected } = options;
  const limitBytes = Math.min(maxSizeBytes, expected?.sizeBytes ?? maxSizeBytes);
  const hashes = { sha256: createHash("sha256"), sha1: createHash("sha1"), md5: createHash("md5") };
  let sizeBytes = 0;

  for await (const chunk of chunksOf(source)) {
    sizeBytes += chunk.length;
    if (sizeBytes > limitBytes) throw tooMuch(options);
    for (const hash of Object.values(hashes)) hash.update(chunk);
    await writeWhole(file, chunk);
  }

  const stored = {
    sizeBytes,
    sha256: hashes.sha256.digest("hex"),
    sha1: hashes.sha1.digest("hex"),
    md5: hashes.md5.digest("hex"),
  };
  if (sizeBytes === 0) throw new ArtifactError("ARTIFACT_EMPTY", "The upload has no bytes. Send the file as the body.");
  if (expected?.sizeBytes !== undefined && sizeBytes !== expected.sizeBytes)
    throw wrongSize(expected.sizeBytes, sizeBytes);
  if (expected?.sha256 !== undefined && stored.sha256 !== expected.sha256) {
    throw new ArtifactError(
      "ARTIFACT_SHA256_MISMATCH",
      `The bytes received have the SHA-256 ${stored.sha256}, announced was ${expected.sha256}. Nothing was stored.`,
      { details: { expectedSha256: expected.sha256, receivedSha256: stored.sha256, sizeBytes } },
    );
  }
  return stored;
}

async function* chunksOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* source;
  } catch (cause) {
    throw new ArtifactError("UPLOAD_INCOMPLETE", "The upload was cut off before its end. Nothing was stored.", {
      cause,
    });
  }
}

/** A single write may write less than it was given, for one when the disk is nearly full. */
async function writeWhole(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let offset = 0; offset < chunk.length; ) {
    offset += (await file.write(chunk, offset)).bytesWritten;
  }
}

function tooMuch({ maxSizeBytes, expected }: PutOptions): ArtifactError {
  if (expected?.sizeBytes !== undefined && expected.sizeBytes <= maxSizeBytes) return wrongSize(expected.sizeBytes);
  return new ArtifactError("ARTIFACT_TOO_LARGE", `The upload is larger than the limit of ${maxSizeBytes} bytes.`, {
    details: { maxSizeBytes },
  });
}

function wrongSize(expectedBytes: number, receivedBytes?: number): ArtifactError {
  const received = receivedBytes === undefined ? "more" : `${receivedBytes}`;
  return new ArtifactError(
    "ARTIFACT_SIZE_MISMATCH",
    `Announced were ${expectedBytes} bytes, received ${received}. Nothing was stored.`,
    {
      details: {
        expectedSizeBytes: expectedBytes,
        ...(receivedBytes === undefined ? {} : { receivedSizeBytes: receivedBytes }),
      },
    },
  );
}
