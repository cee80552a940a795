import { createServer, type RequestListener, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { PROBLEMS, type ProblemCode } from "./problems.ts";

/** How an HTTP server treats connections. */
export interface ServerOptions {
  /** How long an idle connection stays open. */
  readonly keepAliveMs: number;
  /** How long a whole request may take to arrive, uploads included; 0: no limit. */
  readonly uploadTimeoutMs: number;
}

/** Headers are small here; a sender that takes longer is broken or hostile. */
const HEADERS_TIMEOUT_MS = 15_000;

/** More than any client of ours sends, and far below what would hurt. */
const MAX_HEADER_BYTES = 16 * 1024;

/** A server for the application, not listening yet. What is no HTTP is answered with a problem as well. */
export function createHttpServer(listener: RequestListener, options: ServerOptions): Server {
  const server = createServer(
    {
      keepAliveTimeout: options.keepAliveMs,
      requestTimeout: options.uploadTimeoutMs,
      headersTimeout: HEADERS_TIMEOUT_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // Else the second of two Authorization headers would be dropped in silence.
      joinDuplicateHeaders: true,
    },
    listener,
  );
  return server.on("clientError", answerClientError);
}

function answerClientError(error: NodeJS.ErrnoException, socket: Duplex & { bytesWritten?: number }): void {
  // Something was sent on this connection already, perhaps the beginning of an answer: nothing can be added to it.
  if (error.code === "ECONNRESET" || !socket.writable || socket.bytesWritten) {
    socket.destroy(error);
    return;
  }
  const [code, detail] = CLIENT_ERRORS[error.code ?? ""] ?? [
    "REQUEST_INVALID",
    "This is not a well-formed HTTP/1.1 request.",
  ];
  const { status, title } = PROBLEMS[code];
  const body = JSON.stringify({ type: `/docs#${code}`, title, status, code, detail });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/problem+json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** By Node's error code; everything else is malformed. */
const CLIENT_ERRORS: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  HPE_HEADER_OVERFLOW: ["HEADERS_TOO_LARGE", `At most ${MAX_HEADER_BYTES} bytes of headers are read.`],
  ERR_HTTP_REQUEST_TIMEOUT: ["REQUEST_TIMEOUT", "The request did not arrive in time."],
};
