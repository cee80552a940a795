import type { Socket } from "node:net";

/** What {@link ProxyStream} connects. */
export interface ProxyStreamOptions {
  readonly from: Socket;
  readonly to: Socket;
  /** Asked when bytes arrive; false swallows them. */
  readonly accept: () => boolean;
}

/** A chunk on its way, or the end of the stream; it may leave at `dueAt` on the clock of `performance.now()`. */
interface Parcel {
  readonly data: Buffer | "end";
  readonly dueAt: number;
}

/** One direction of a proxied connection: forwards bytes and their end in order, held back or delayed as told. */
export class ProxyStream {
  readonly #from: Socket;
  readonly #to: Socket;
  #queue: Parcel[] = [];
  #held = false;
  #delayMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ from, to, accept }: ProxyStreamOptions) {
    this.#from = from;
    this.#to = to;
    from.on("data", (data: Buffer) => {
      if (accept()) this.#add(data);
    });
    // An orderly end, a reset and a refused connection all mean that nothing more comes; which one is not passed on.
    from.once("end", () => this.#add("end"));
    from.on("error", () => this.#add("end"));
    to.on("drain", () => from.resume());
    to.on("close", () => from.resume()); // read on to see the end
  }

  /** Holds bytes back from now on, or delays those that arrive from now on; what was held leaves when no longer held. */
  shape({ held, delayMs }: { readonly held: boolean; readonly delayMs: number }): void {
    this.#held = held;
    this.#delayMs = delayMs;
    this.#flush();
  }

  /** Destroys the sockets on both sides and drops what is on its way. */
  destroy(): void {
    clearTimeout(this.#timer);
    this.#queue = [];
    this.#from.destroy();
    this.#to.destroy();
  }

  #add(data: Buffer | "end"): void {
    this.#queue.push({ data, dueAt: performance.now() + this.#delayMs });
    this.#flush();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    while (!this.#held) {
      const first = this.#queue[0];
      if (first === undefined) return;
      const waitMs = first.dueAt - performance.now();
      if (waitMs > 0 && this.#delayMs > 0) {
        this.#timer = setTimeout(() => this.#flush(), waitMs);
        return;
      }
      this.#queue.shift();
      this.#forward(first.data);
    }
  }

  #forward(data: Buffer | "end"): void {
    if (this.#to.destroyed) return;
    if (data === "end") this.#to.end();
    else if (!this.#to.write(data)) this.#from.pause();
  }
}
