import type { CancelTimer, Clock } from "./clock.ts";
import type { ExtendOutcome } from "./store.ts";

/** What is extended: a lease, which knows itself when it may not be any more. */
export interface Extendable {
  remainingMs(): number;
  /** Asks the store once; rejects on a fault, after which the lease may go on. */
  extend(ttlMs: number): Promise<ExtendOutcome>;
}

export interface AutoExtendContext {
  readonly clock: Clock;
  /** By how much the lease is extended each time. */
  readonly ttlMs: number;
  /** When the lease ends for good, on the clock: no extension goes beyond, so the one that reaches it is the last. */
  readonly holdEndsAt: number;
  /** Told of each failed extension; another one follows. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Extends a lease in the background until it is stopped, the lease is lost, or its last end is reached.
 *
 * The first request goes out when a third of the TTL is over. After a fault the next one follows, the sooner the less time
 * is left, until the lease has ended by its own clock. There is a pause before each request, so that no TTL, however small,
 * makes it spin. It never rejects, and its timers keep no process alive. The lease stops it when it ends.
 */
export class AutoExtend {
  readonly #lease: Extendable;
  readonly #context: AutoExtendContext;
  #cancelTimer: CancelTimer | undefined;
  #stopped = false;

  constructor(lease: Extendable, context: AutoExtendContext) {
    this.#lease = lease;
    this.#context = context;
  }

  /** Plans the next extension: to be called at the start, and when the lease's end has become an earlier one. */
  plan(): void {
    this.#schedule(this.#lease.remainingMs() - this.#context.ttlMs * EXTEND_BELOW);
  }

  /** Nothing is sent from now on. A request that is out already is the lease's own to deal with. */
  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
  }

  #schedule(delayMs: number): void {
    if (this.#stopped) return;
    this.#cancelTimer?.();
    const wake = (): void => {
      // Only a logger that throws gets as far as this, and there is nobody left to tell.
      this.#wake().catch(() => {});
    };
    this.#cancelTimer = this.#context.clock.setTimer(Math.max(delayMs, MIN_PAUSE_MS), wake, { background: true });
  }

  async #wake(): Promise<void> {
    // A timer may fire early, and the lease may have been given more time meanwhile.
    const { clock, ttlMs, holdEndsAt } = this.#context;
    if (this.#lease.remainingMs() > ttlMs * EXTEND_BELOW + EARLY_MS) return this.plan();
    const isLast = clock.now() + ttlMs >= holdEndsAt;
    try {
      const outcome = await this.#lease.extend(ttlMs);
      if (outcome === "extended" && !isLast) this.plan();
    } catch (error) {
      this.#schedule(Math.min(this.#lease.remainingMs() * RETRY_AFTER, MAX_RETRY_PAUSE_MS));
      if (!this.#stopped) this.#context.onFault(error);
    }
  }
}

/** The part of the TTL that is kept for retries. */
const EXTEND_BELOW = 2 / 3;

/** The part of the remaining time that passes before a retry. */
const RETRY_AFTER = 1 / 4;

/** A server that is back is found again soon, also by a lease that has minutes left. */
const MAX_RETRY_PAUSE_MS = 1_000;

/** At most 200 requests a second, whatever the TTL. A lease that is shorter than this lapses. */
const MIN_PAUSE_MS = 5;

/** Timers may fire up to a millisecond before their time. */
const EARLY_MS = 2;
