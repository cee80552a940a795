import type { IncomingMessage } from "node:http";
import { uploadChunks } from "../artifacts/upload-chunks.ts";
import { HttpProblem } from "./problems.ts";

/**
 * The body of a request as text, piece by piece as it comes. A byte order mark at its start is left out.
 *
 * @throws {HttpProblem} `BODY_TOO_LARGE`, `BODY_INCOMPLETE`, or `REQUEST_INVALID` where it is not UTF-8.
 */
export async function* bodyText(
  request: IncomingMessage,
  { maxBytes }: { readonly maxBytes: number },
): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let bytes = 0;
  for await (const chunk of chunksOf(request)) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new HttpProblem("BODY_TOO_LARGE", { detail: `A body of at most ${maxBytes} bytes is accepted here.` });
    }
    yield decoded(() => decoder.decode(chunk, { stream: true }));
  }
  yield decoded(() => decoder.decode());
}

async function* chunksOf(request: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* uploadChunks(request);
  } catch (cause) {
    throw new HttpProblem("BODY_INCOMPLETE", { detail: "The connection ended before the body did.", cause });
  }
}

function decoded(decode: () => string): string {
  try {
    return decode();
  } catch (cause) {
    throw new HttpProblem("REQUEST_INVALID", { detail: "The body is not UTF-8.", cause });
  }
}
