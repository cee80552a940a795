import { connect, type Socket } from "node:net";

/** What a device of the herd is told. */
export interface HerdAnswer {
  /** 0: the connection broke. */
  readonly status: number;
  /** The reason or the code. */
  readonly word: string;
  /** `pollAfterSeconds` of an answer, `Retry-After` of a refusal; `undefined`: nothing was said. */
  readonly waitSeconds: number | undefined;
}

/** An answer with how long it took from when the request was given to a connection. */
export interface TimedAnswer extends HerdAnswer {
  readonly durationMs: number;
}

interface Waiting {
  readonly bytes: string;
  readonly resolve: (answer: TimedAnswer) => void;
}

const LOST: HerdAnswer = { status: 0, word: "lost", waitSeconds: undefined };

/**
 * Sends checks to one process over so many connections, on each one after the other. It reads no more of HTTP than the
 * service's answers need: as many requests as a herd's would keep Node's own client busy for longer than the service.
 */
export class HerdClient implements Disposable {
  readonly #host: string;
  readonly #port: number;
  readonly #idle: Socket[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #open = new Set<Socket>();
  readonly #connections: number;
  #next = 0;

  constructor(url: string, { connections }: { readonly connections: number }) {
    const { hostname, port } = new URL(url);
    this.#host = hostname;
    this.#port = Number(port);
    this.#connections = connections;
  }

  /** A check of a device that runs 2.0.0. Always resolves. */
  check(token: string): Promise<TimedAnswer> {
    const body = '{"version":"2.0.0"}';
    const bytes =
      `POST /v1/check HTTP/1.1\r\nhost: ${this.#host}:${this.#port}\r\nauthorization: Bearer ${token}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    return new Promise((resolve) => {
      this.#waiting.push({ bytes, resolve });
      const socket = this.#idle.pop() ?? (this.#open.size < this.#connections ? this.#connect() : undefined);
      if (socket !== undefined) this.#serve(socket);
    });
  }

  [Symbol.dispose](): void {
    for (const socket of this.#open) socket.destroy();
  }

  #connect(): Socket {
    const socket = connect(this.#port, this.#host).setNoDelay().setEncoding("latin1");
    this.#open.add(socket);
    // What follows an error is the end of the connection, which is looked at.
    socket.on("error", () => {});
    return socket;
  }

  /** Sends what has waited the longest, and goes on with the next until nothing waits. */
  #serve(socket: Socket): void {
    const request = this.#waiting[this.#next];
    if (request === undefined) {
      this.#waiting.length = 0;
      this.#next = 0;
      this.#idle.push(socket);
      socket.once("close", () => this.#forget(socket));
      return;
    }
    this.#next += 1;
    const sentAt = performance.now();
    let received = "";
    const done = (answer: HerdAnswer): void => {
      socket.removeAllListeners("data").removeAllListeners("close");
      request.resolve({ ...answer, durationMs: performance.now() - sentAt });
      if (answer !== LOST) this.#serve(socket);
      else {
        this.#forget(socket);
        if (this.#next < this.#waiting.length) this.#serve(this.#connect());
      }
    };
    socket.removeAllListeners("close").once("close", () => done(LOST));
    socket.on("data", (chunk: string) => {
      received += chunk;
      const answer = parse(received);
      if (answer !== undefined) done(answer);
    });
    socket.write(request.bytes);
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    const index = this.#idle.indexOf(socket);
    if (index >= 0) this.#idle.splice(index, 1);
  }
}

/** `undefined`: there is more to come. */
function parse(received: string): HerdAnswer | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = received.slice(0, end);
  const body = received.slice(end + 4);
  if (body.length < Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])) return undefined;
  const wait = /\r\nretry-after: (\d+)/i.exec(head)?.[1] ?? /"pollAfterSeconds":(\d+)/.exec(body)?.[1];
  return {
    status: Number(head.slice(9, 12)),
    word: /"(?:code|reason)":"([A-Z_]+)"/.exec(body)?.[1] ?? "none",
    waitSeconds: wait === undefined ? undefined : Number(wait),
  };
}
