/**
 * Frees the memory of a chunk that nobody will look at again, now. It lies outside the heap, so the garbage collector is in
 * no hurry: V8 lets up to 64 MiB of such memory pile up, in every process through which files go. A part of a larger
 * buffer is left alone: others use the rest.
 */
export function releaseChunk(chunk: Uint8Array): void {
  const { buffer } = chunk;
  if (buffer instanceof ArrayBuffer && chunk.byteLength === buffer.byteLength) buffer.transfer(0);
}
