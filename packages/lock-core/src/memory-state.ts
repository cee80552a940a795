import { type Clock, systemClock } from "./clock.ts";
import { MemoryLine } from "./memory-line.ts";
import type { LockMode } from "./store.ts";

/** The backend behind one or more `MemoryStore`s: their locks, and the one clock that decides when leases lapse. */
export class MemoryState {
  readonly #locks = new Map<string, MemoryLock>();
  readonly #lines = new Map<string, MemoryLine>();
  readonly #clock: Pick<Clock, "now">;
  #sweep: Iterator<[string, MemoryLock]> = this.#locks.entries();
  #lastToken = 0n;

  /** By default the state runs on Node's monotonic clock. */
  constructor(options: { readonly clock?: Pick<Clock, "now"> | undefined } = {}) {
    this.#clock = options.clock ?? systemClock;
  }

  /** Those who wait for a key, where there are any. */
  line(key: string): MemoryLine {
    return this.#lines.get(key) ?? new MemoryLine(this.#clock, { key, lines: this.#lines });
  }

  /** How many keys are kept, those whose leases lapsed but were not cleared away yet included. */
  get size(): number {
    return this.#locks.size;
  }

  now(): number {
    return this.#clock.now();
  }

  /** The lock under the key with its live holders, of which there is one at least. */
  get(key: string): MemoryLock | undefined {
    const lock = this.#locks.get(key);
    return lock !== undefined && this.#clearLapsed(key, lock) ? lock : undefined;
  }

  /** Puts a lock without holders under a free key. The caller adds the first holder. */
  add(key: string): MemoryLock {
    this.#clearSomeLapsed();
    const lock: MemoryLock = { mode: "shared", ends: new Map(), fencingToken: undefined };
    this.#locks.set(key, lock);
    return lock;
  }

  /** Whether there was something to delete. */
  delete(key: string): boolean {
    return this.#locks.delete(key);
  }

  /**
   * A fencing token above all earlier ones. One counter serves all keys, so nothing has to be kept for a key that is free;
   * it starts at the time of day in microseconds, so that it goes on where an earlier process has stopped.
   */
  nextToken(): bigint {
    const timeOfDay = BigInt(Date.now()) * 1_000n;
    this.#lastToken = this.#lastToken >= timeOfDay ? this.#lastToken + 1n : timeOfDay;
    return this.#lastToken;
  }

  /** The token for a reader of a key that no holder has one of: it is below every later one, and not below any so far. */
  currentToken(): bigint {
    return this.#lastToken === 0n ? this.nextToken() : this.#lastToken;
  }

  /**
   * Looks at the next two locks of a walk that goes round for ever. As each call adds one lock at most, a walk ends before
   * the map has grown by half, so lapsed locks never outnumber the others by more than a small factor, and no call takes
   * longer than another.
   */
  #clearSomeLapsed(): void {
    for (let looked = 0; looked < 2; looked++) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#locks.entries();
        return;
      }
      this.#clearLapsed(...next.value);
    }
  }

  /** Whether a holder is left. */
  #clearLapsed(key: string, { ends }: MemoryLock): boolean {
    const now = this.#clock.now();
    for (const [owner, endsAt] of ends) if (endsAt <= now) ends.delete(owner);
    return ends.size > 0 || !this.#locks.delete(key);
  }
}

/** What is kept under a key. */
export interface MemoryLock {
  mode: LockMode;
  /** When the lease of each holder ends, by its owner token, on the state's clock. */
  readonly ends: Map<string, number>;
  /** The token of the latest grant that asked for one. */
  fencingToken: bigint | undefined;
}
