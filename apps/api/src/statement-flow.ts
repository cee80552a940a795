/** What a pool of connections is doing at a moment. */
export interface PoolLoad {
  /** Connections that there may be. */
  readonly size: number;
  /** Connections that there are, or are being made. */
  readonly open: number;
  /** Connections that have been sent something, and owe an answer. */
  readonly inUse: number;
  /** Statements that were sent, and have no answer yet. */
  readonly sent: number;
  /** Statements that wait for a connection. */
  readonly waiting: number;
  /** How long the oldest of all these statements has been on its way. */
  readonly oldestMs: number;
}

/** A statement from when it was asked for until its answer. */
export class Flight {
  readonly sinceMs: number = performance.now();
  readonly #query: { readonly state?: unknown };

  constructor(query: object) {
    this.#query = query;
  }

  /** The driver's mark of the connection that it was sent on. */
  get connection(): unknown {
    return this.#query.state;
  }

  /** Whether it still waits for a connection. */
  get isWaiting(): boolean {
    return this.#query.state === null;
  }
}

/** Knows the statements that are on their way to the database; cheap enough for every one of them. */
export class StatementFlow {
  /** In the order of their beginnings. */
  readonly #flights = new Set<Flight>();
  /** Of the statements that were answered since it was taken last. */
  #leastMs: number | undefined;

  /** @param query as the driver has made it */
  begin(query: object): Flight {
    const flight = new Flight(query);
    this.#flights.add(flight);
    return flight;
  }

  /** A statement is over, and has an answer or has failed. */
  end(flight: Flight, outcome: "answered" | "failed"): void {
    this.#flights.delete(flight);
    if (outcome === "failed") return;
    const tookMs = performance.now() - flight.sinceMs;
    if (this.#leastMs === undefined || tookMs < this.#leastMs) this.#leastMs = tookMs;
  }

  /**
   * The least time that a statement has taken since the last call. While none was answered and more are on their way
   * than there are connections: how long the oldest has waited. `undefined`: nothing is known.
   */
  takeDelayMs(connections: number): number | undefined {
    const leastMs = this.#leastMs;
    this.#leastMs = undefined;
    if (leastMs !== undefined || this.#flights.size <= connections) return leastMs;
    const [oldest] = this.#flights;
    return oldest === undefined ? undefined : performance.now() - oldest.sinceMs;
  }

  /** What is on its way now. */
  load(): Pick<PoolLoad, "inUse" | "sent" | "waiting" | "oldestMs"> {
    const connections = new Set<unknown>();
    let waiting = 0;
    for (const flight of this.#flights) {
      if (flight.isWaiting) waiting += 1;
      else connections.add(flight.connection);
    }
    const [oldest] = this.#flights;
    return {
      inUse: connections.size,
      sent: this.#flights.size - waiting,
      waiting,
      oldestMs: oldest === undefined ? 0 : performance.now() - oldest.sinceMs,
    };
  }
}
