import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { HttpProblem } from "./problems.ts";

/** How much of a JSON body is read, and for how long. */
export interface JsonBodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/**
 * Reads a request's body as JSON. `undefined`: there is no body.
 *
 * @throws {HttpProblem} when it is too large, late, cut off, of another type or encoding, or no JSON.
 */
export async function readJsonBody(request: IncomingMessage, limits: JsonBodyLimits): Promise<unknown> {
  if (!hasBody(request)) return undefined;
  checkType(request);
  return parse(await readWhole(request, limits));
}

function hasBody(request: IncomingMessage): boolean {
  const length = request.headers["content-length"];
  return length === undefined ? request.headers["transfer-encoding"] !== undefined : length !== "0";
}

/** `application/json`, with no parameter but `charset=utf-8`, which is what JSON is in anyway (RFC 8259 §8.1). */
const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

function checkType(request: IncomingMessage): void {
  const type = request.headers["content-type"];
  if (type !== "application/json" && (type === undefined || !JSON_TYPE.test(type))) {
    throw new HttpProblem("MEDIA_TYPE_UNSUPPORTED", {
      detail: "Send the body as JSON in UTF-8, with the header Content-Type: application/json.",
      headers: { Accept: "application/json" },
    });
  }
  checkEncoding(request);
}

/** Refuses a body that is compressed: what would come out of it has no bound. */
export function checkEncoding(request: IncomingMessage): void {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new HttpProblem("MEDIA_TYPE_UNSUPPORTED", {
      detail: "Send the body as it is: a Content-Encoding is not accepted.",
      headers: { "Accept-Encoding": "identity" },
    });
  }
}

/**
 * Reads a request's body to its end.
 *
 * @throws {HttpProblem} when it is too large, late or cut off.
 */
export function readWhole(request: IncomingMessage, { maxBytes, timeoutMs }: JsonBodyLimits): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return Promise.reject(tooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const timer = setTimeout(() => {
      const detail = `The body had not arrived after ${timeoutMs} ms.`;
      settle(() => reject(new HttpProblem("REQUEST_TIMEOUT", { detail, headers: { Connection: "close" } })));
    }, timeoutMs);
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > maxBytes) settle(() => reject(tooLarge(maxBytes)));
      else chunks.push(chunk);
    };
    const onEnd = (): void => {
      const [only] = chunks;
      settle(() => resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, length)));
    };
    const onCut = (): void => {
      settle(() => reject(new HttpProblem("BODY_INCOMPLETE", { detail: "The connection ended before the body did." })));
    };
    const settle = (end: () => void): void => {
      clearTimeout(timer);
      request.off("data", onData).off("end", onEnd).off("close", onCut);
      end();
    };
    // An error of the request is always followed by its close.
    request.on("data", onData).on("end", onEnd).on("close", onCut).on("error", ignore);
  });
}

/** `Connection: close`, since the rest of the body would have to be read before the connection could be used again. */
function tooLarge(maxBytes: number): HttpProblem {
  return new HttpProblem("BODY_TOO_LARGE", {
    detail: `A body of at most ${maxBytes} bytes is accepted here.`,
    headers: { Connection: "close" },
  });
}

function parse(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw notJson(" It is not UTF-8.");
  try {
    return JSON.parse(bytes.toString());
  } catch {
    // The parser's own message quotes the body, which may hold a secret.
    throw notJson("");
  }
}

function notJson(reason: string): HttpProblem {
  return new HttpProblem("JSON_INVALID", { detail: `The body could not be read as JSON.${reason}` });
}

function ignore(): void {}
