import type { IncomingMessage } from "node:http";

/**
 * The body of a request, chunk by chunk; a chunk is valid until the next one is asked for. Giving up early leaves the
 * request as it is, neither drained nor destroyed: an answer may still have to go out on its socket.
 */
export async function* uploadChunks(request: IncomingMessage): AsyncGenerator<Buffer> {
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    yield chunk;
    release(chunk);
  }
}

/**
 * Frees a chunk's memory now. It lies outside the heap, so the garbage collector is in no hurry: V8 lets up to 64 MiB of
 * such memory pile up, in every process that takes uploads. A part of a larger buffer is left alone: others use the rest.
 */
function release(chunk: Buffer): void {
  const { buffer } = chunk;
  if (buffer instanceof ArrayBuffer && chunk.byteLength === buffer.byteLength) buffer.transfer(0);
}
