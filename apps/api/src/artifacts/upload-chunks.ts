import type { IncomingMessage } from "node:http";
import { releaseChunk } from "./chunk-memory.ts";

/**
 * The body of a request, chunk by chunk; a chunk is valid until the next one is asked for. Giving up early leaves the
 * request as it is, neither drained nor destroyed: an answer may still have to go out on its socket.
 */
export async function* uploadChunks(request: IncomingMessage): AsyncGenerator<Buffer> {
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    yield chunk;
    releaseChunk(chunk);
  }
}
