import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A bare connection that sends inline Redis commands and gathers what comes back, to see what a proxy does to bytes. */
export class RedisSocket implements Disposable {
  readonly #socket: Socket;
  received = "";

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      this.received += text;
    });
    socket.on("error", () => {}); // a cut connection is what these tests are about; `closed` tells
  }

  static async open(server: { readonly host: string; readonly port: number }): Promise<RedisSocket> {
    const socket = connect({ host: server.host, port: server.port, noDelay: true });
    const opened = new RedisSocket(socket);
    await once(socket, "connect");
    return opened;
  }

  get isClosed(): boolean {
    return this.#socket.closed;
  }

  send(command: string): void {
    this.#socket.write(`${command}\r\n`);
  }

  /** Sends a command and resolves with everything received by the time a whole line more has come. */
  async ask(command: string): Promise<string> {
    this.received = "";
    this.send(command);
    await this.line();
    return this.received.trimEnd();
  }

  async line(): Promise<void> {
    while (!this.received.endsWith("\r\n")) await once(this.#socket, "data");
  }

  async closed(): Promise<void> {
    if (!this.#socket.closed) await once(this.#socket, "close");
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Closes by a reset, as the kernel does for a process that dies with unread data. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  /** Sends the end of the stream and goes on reading, as a client that gives up in good order does. */
  end(): void {
    this.#socket.end();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
