import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { uploadChunks } from "../../src/artifacts/upload-chunks.ts";

const MiB = 1024 * 1024;

describe("uploadChunks", () => {
  const server = createServer();
  beforeEach(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(() => server.close());

  test("gives every byte of the body once, in order", async () => {
    const body = randomBytes(3 * MiB);
    const incoming = await post(body);
    const received: Buffer[] = [];
    // The chunk is the consumer's only until the next one: what is kept must be copied.
    for await (const chunk of uploadChunks(incoming)) received.push(Buffer.from(chunk));
    expect(Buffer.concat(received).equals(body)).toBe(true);
  });

  test("holds one chunk's memory at a time", async () => {
    const incoming = await post(randomBytes(8 * MiB));
    const chunks: Buffer[] = [];
    for await (const chunk of uploadChunks(incoming)) chunks.push(chunk);
    expect(chunks.length).toBeGreaterThan(100);
    const heldBytes = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
    expect(heldBytes).toBeLessThan(MiB);
  });

  test("given up early, it leaves the request open, so that its sender can still be answered", async () => {
    const incoming = await post(randomBytes(MiB));
    for await (const _ of uploadChunks(incoming)) break;
    expect(incoming.destroyed).toBe(false);
    incoming.resume();
    await once(incoming, "end");
  });

  async function post(body: Buffer): Promise<IncomingMessage> {
    const { port } = server.address() as AddressInfo;
    const sending = request({ port, host: "127.0.0.1", method: "POST" });
    sending.on("error", () => {}).end(body);
    const [incoming, response] = await once(server, "request");
    incoming.once("end", () => response.end());
    return incoming;
  }
});
