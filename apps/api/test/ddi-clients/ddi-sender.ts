import { Agent, request } from "node:http";

/** What a simulated device sends. */
export interface DdiSent {
  readonly method: "GET" | "HEAD" | "PUT" | "POST";
  readonly url: string;
  readonly token: string;
  readonly json?: unknown;
  readonly range?: string;
}

/** An answer, read whole; status 0 where the connection broke. */
export interface DdiReceived {
  readonly status: number;
  readonly bytes: Buffer;
  readonly contentLength: number;
  readonly durationMs: number;
}

/** Sends what many devices send at once; each of them has a connection while it needs one. */
export class DdiSender implements Disposable {
  readonly #agent = new Agent({ keepAlive: true });

  /** Always resolves. */
  send({ method, url, token, json, range }: DdiSent): Promise<DdiReceived> {
    const sentAt = performance.now();
    const headers = {
      authorization: `TargetToken ${token}`,
      ...(json === undefined ? {} : { "content-type": "application/json" }),
      ...(range === undefined ? {} : { range }),
    };
    return new Promise((resolve) => {
      const done = (status: number, bytes: Buffer, contentLength: number): void =>
        resolve({ status, bytes, contentLength, durationMs: performance.now() - sentAt });
      const broken = (): void => done(0, Buffer.alloc(0), 0);
      const outgoing = request(url, { method, headers, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", broken);
        response.on("end", () =>
          done(response.statusCode ?? 0, Buffer.concat(chunks), Number(response.headers["content-length"] ?? 0)),
        );
      });
      outgoing.on("error", broken);
      outgoing.end(json === undefined ? undefined : JSON.stringify(json));
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
