import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that a client has sent, with how it was answered. */
export interface SeenRequest {
  readonly method: string;
  /** Below the device's base, without the query: `/deploymentBase/5`. */
  readonly resource: string;
  readonly range: string | undefined;
  readonly status: number;
}

/** A balancer as the service knows it, that tells what went through it and can break off a download. */
export interface RecordingProxy extends AsyncDisposable {
  readonly url: string;
  /** In the order in which they were answered. */
  readonly seen: readonly SeenRequest[];
  /** Breaks the connection of the next `GET` of an artifact after so many bytes of the file. */
  cutDownloadAfter(bytes: number): void;
}

/** Starts one in front of a service that trusts 127.0.0.1. */
export async function startRecordingProxy(targetUrl: string): Promise<RecordingProxy> {
  const seen: SeenRequest[] = [];
  let cutAfter: number | undefined;

  const server = createServer((incoming, outgoing) => {
    const { method = "", url = "", headers } = incoming;
    const resource = url.replace(/^\/[^/]+\/controller\/v1\/[^/?]+/, "").replace(/\?.*/, "");
    const forwarded = { ...headers, "x-forwarded-host": headers.host, "x-forwarded-proto": "http" };
    const upstream = request(`${targetUrl}${url}`, { method, headers: forwarded }, (answer) => {
      const status = answer.statusCode ?? 0;
      seen.push({ method, resource, range: headers.range, status });
      outgoing.writeHead(status, answer.rawHeaders);
      if (cutAfter === undefined || method !== "GET" || !resource.includes("/artifacts/")) {
        answer.pipe(outgoing);
        return;
      }
      const bytes = cutAfter;
      cutAfter = undefined;
      passOnly(bytes, { answer, outgoing });
    });
    upstream.on("error", () => outgoing.destroy());
    outgoing.on("close", () => upstream.destroy());
    incoming.pipe(upstream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    cutDownloadAfter(bytes) {
      cutAfter = bytes;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function passOnly(
  bytes: number,
  { answer, outgoing }: { readonly answer: IncomingMessage; readonly outgoing: ServerResponse },
): void {
  let passed = 0;
  answer.on("data", (chunk: Buffer) => {
    const rest = bytes - passed;
    passed += chunk.length;
    if (rest <= 0) return;
    // The end of the connection only once the client's side has been given all of them.
    if (chunk.length < rest) outgoing.write(chunk);
    else outgoing.write(chunk.subarray(0, rest), () => outgoing.socket?.destroySoon());
  });
}
