import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { Logger } from "pino";
import { HttpProblem } from "../http/problems.ts";
import { artifactProblem } from "./artifact-problem.ts";
import type { ArtifactKey, ArtifactStore, ByteRange } from "./artifact-store.ts";
import { decideRange } from "./byte-range.ts";
import { releaseChunk } from "./chunk-memory.ts";

/** The bytes to send, and what the response says about them. */
export interface SentArtifact extends ArtifactKey {
  /** Printable ASCII without `"` and `\`, which the upload has seen to. */
  readonly fileName: string;
  readonly contentType: string;
}

/** What {@link sendArtifact} works with. */
export interface SendArtifactOptions {
  readonly store: ArtifactStore;
  readonly request: IncomingMessage;
  readonly log: Logger;
}

/** A receiver that takes no byte for so long has gone; what is held open for it is freed. */
const RECEIVER_IDLE_MS = 120_000;

/**
 * Decides how a GET or HEAD for an artifact is to be served, by RFC 9110, and answers the function that writes the
 * response: 304, the whole, or one range. The artifact's SHA-256 is its strong ETag, so a download can be continued by
 * `Range` and `If-Range` and never mixes two files.
 *
 * @throws {HttpProblem} `RANGE_NOT_SATISFIABLE`; from the function, before the first byte, `ARTIFACT_MISSING`.
 */
export function sendArtifact(
  artifact: SentArtifact,
  options: SendArtifactOptions,
): { stream: (response: ServerResponse) => Promise<void> } {
  const { method, headers } = options.request;
  const etag = `"${artifact.sha256}"`;
  const shared = {
    ETag: etag,
    // The bytes under one URL never change. A shared cache would serve them beyond the URL's time, so only private ones
    // may keep them; nobody may recompress them, because their size and hash are promised.
    "Cache-Control": "private, max-age=31536000, immutable, no-transform",
    "Accept-Ranges": "bytes",
  };
  if (matchesAny(headers["if-none-match"], etag)) {
    return { stream: async (response) => void response.writeHead(304, shared).end() };
  }

  // Range is defined for GET alone (RFC 9110 §14.2), and only for the file that the client has begun to load (§13.1.5).
  const ranged = method === "GET" && (headers["if-range"] === undefined || headers["if-range"] === etag);
  const decision = decideRange(ranged ? headers.range : undefined, artifact.sizeBytes);
  if (decision.kind === "unsatisfiable") {
    throw new HttpProblem("RANGE_NOT_SATISFIABLE", {
      detail: `The artifact has ${artifact.sizeBytes} bytes, counted from 0. A download that has them all is complete.`,
      headers: { "Content-Range": `bytes */${artifact.sizeBytes}` },
    });
  }

  const range = decision.kind === "part" ? decision.range : undefined;
  const full = { ...shared, ...describe(artifact, range) };
  return { stream: (response) => write(artifact, { ...options, response, range, headers: full }) };
}

type Headers = Readonly<Record<string, string | number>>;

function describe(artifact: SentArtifact, range: ByteRange | undefined): Headers {
  const { sizeBytes } = artifact;
  return {
    "Content-Type": artifact.contentType,
    "Content-Disposition": `attachment; filename="${artifact.fileName}"`,
    // RFC 9530: of the whole representation, also where a part is sent.
    "Repr-Digest": `sha-256=:${Buffer.from(artifact.sha256, "hex").toString("base64")}:`,
    "Content-Length": range === undefined ? sizeBytes : range.end - range.start + 1,
    ...(range === undefined ? {} : { "Content-Range": `bytes ${range.start}-${range.end}/${sizeBytes}` }),
  };
}

async function write(
  artifact: SentArtifact,
  options: SendArtifactOptions & { response: ServerResponse; range: ByteRange | undefined; headers: Headers },
): Promise<void> {
  const { store, request, log, response, range, headers } = options;
  const source = await store.open(artifact, range).catch((error: unknown) => {
    throw artifactProblem(error);
  });
  if (request.method === "HEAD") {
    source.destroy();
    response.writeHead(200, headers).end();
    return;
  }
  response.setTimeout(RECEIVER_IDLE_MS, () => response.destroy());
  response.writeHead(range === undefined ? 200 : 206, headers);
  if ((await copy(source, response)) === "gone") {
    log.debug({ sha256: artifact.sha256 }, "the client ended the download early");
  }
}

/**
 * Writes all that the source has. The next chunk is written when the last one is with the system, so a slow client slows
 * the disk down instead of filling memory. Leaving the loop early closes the source.
 */
async function copy(source: Readable, response: ServerResponse): Promise<"complete" | "gone"> {
  for await (const chunk of source as AsyncIterable<Buffer>) {
    const error = await new Promise((written) => response.write(chunk, written));
    if (error) return "gone";
    releaseChunk(chunk);
  }
  response.end();
  return "complete";
}

/** If-None-Match compares weakly (RFC 9110 §13.1.2): a `W/` that a proxy has added does not count. */
export function matchesAny(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === "*") return true;
  return header.split(",").some((candidate) => candidate.trim().replace(/^W\//, "") === etag);
}
