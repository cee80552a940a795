import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** What clients ask for, again and again. */
export interface Ask {
  /** A whole request, as it goes over the wire. */
  next(): string;
  /** What every answer must hold: a benchmark of refusals would be a fast one. */
  readonly expect: string;
}

/** What a load has shown. */
export interface LoadResult {
  readonly answered: number;
  /** Answers 429 and 503, which are not among the answered. */
  readonly refused: number;
  readonly elapsedMs: number;
  /** Of the answered, sorted. */
  readonly latenciesMs: Float64Array;
}

/**
 * Clients that each send a request over a connection of their own, wait for its answer and send the next one at once.
 * Bare sockets: whatever the load takes of the machine, the server does not have.
 */
export class Clients implements Disposable {
  readonly #sockets: readonly Socket[];

  private constructor(sockets: readonly Socket[]) {
    this.#sockets = sockets;
  }

  /** So many connections in all, shared out evenly among the ports. */
  static async connect(ports: readonly number[], count: number): Promise<Clients> {
    const sockets = Array.from({ length: count }, (_, i) =>
      connect({ host: "127.0.0.1", port: ports[i % ports.length] ?? 0, noDelay: true }),
    );
    await Promise.all(sockets.map((socket) => once(socket.setEncoding("latin1"), "connect")));
    return new Clients(sockets);
  }

  /** @throws Error at the first answer that is neither right nor a refusal, and when a connection ends. */
  async run(ask: Ask, durationMs: number): Promise<LoadResult> {
    const latencies: number[] = [];
    let refused = 0;
    const startedAt = performance.now();
    const endAt = startedAt + durationMs;
    await Promise.all(
      this.#sockets.map((socket) =>
        askUntil(socket, { ask, endAt }, (status, latencyMs) => {
          if (status === 200) latencies.push(latencyMs);
          else refused += 1;
        }),
      ),
    );
    return {
      answered: latencies.length,
      refused,
      elapsedMs: performance.now() - startedAt,
      latenciesMs: Float64Array.from(latencies).sort(),
    };
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

function askUntil(
  socket: Socket,
  { ask, endAt }: { readonly ask: Ask; readonly endAt: number },
  onAnswer: (status: number, latencyMs: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let sentAt = performance.now();
    let text = "";
    const onData = (chunk: string): void => {
      text += chunk;
      const length = lengthOf(text);
      if (length === undefined || text.length < length) return;
      const now = performance.now();
      const status = Number(text.slice(9, 12));
      const wrong = status === 200 ? !text.includes(ask.expect) : status !== 429 && status !== 503;
      if (wrong || text.length > length) {
        end(new Error(`an answer that is not ${ask.expect}:\n${text}`));
        return;
      }
      onAnswer(status, now - sentAt);
      text = "";
      if (now >= endAt) {
        end();
        return;
      }
      sentAt = now;
      socket.write(ask.next(), "latin1");
    };
    const onClose = (): void => end(new Error("the server has closed a connection"));
    const end = (error?: Error): void => {
      socket.off("data", onData).off("close", onClose).off("error", end);
      if (error === undefined) resolve();
      else reject(error);
    };
    socket.on("data", onData).on("close", onClose).on("error", end);
    socket.write(ask.next(), "latin1");
  });
}

/** The length of the whole answer at the beginning of the text; `undefined` while its head is not complete. */
function lengthOf(text: string): number | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const head = text.slice(0, end);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`an answer without a length:\n${head}`);
  return end + 4 + Number(length);
}

/** A request as a small HTTP client writes it. */
export function requestText(
  method: "GET" | "POST",
  path: string,
  { token, json }: { readonly token?: string; readonly json?: unknown } = {},
): string {
  const body = json === undefined ? "" : JSON.stringify(json);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(json === undefined ? [] : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}
