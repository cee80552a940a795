import { type AbortSignalLike, untilAborted } from "./abort-signal.ts";
import type { CancelTimer, Clock } from "./clock.ts";
import type { AcquireRequest, Grant } from "./store.ts";
import type { WaiterRequest } from "./wait-queue.ts";

/**
 * What a waiter is told: `woken` when it should ask now, `moved-up` when it has become the first of its process behind a
 * new holder, so that from now on asking is up to it.
 */
export type Notice = "woken" | "moved-up";

/** A grant that a waiter got without asking for it itself. */
export interface HandedOver {
  readonly grant: Grant;
  /** When the request for it left, on the waiter's clock: its lifetime counts from there. */
  readonly sentAt: number;
}

/** One acquire that waits, as the queue of its process sees it. */
export class Waiter {
  readonly #asked: AcquireRequest;
  readonly #clock: Clock;
  readonly #startedAt: number;
  #notice: Notice | undefined;
  #interrupt: (() => void) | undefined;
  /** What the store said last about when to ask again. */
  retryAfterMs: number | undefined;
  handedOver: HandedOver | undefined;
  /** Whether its wait has ended with a lease. */
  isServed = false;
  #fault: unknown;

  constructor(asked: AcquireRequest, clock: Clock) {
    this.#asked = asked;
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  get mode(): AcquireRequest["mode"] {
    return this.#asked.mode;
  }

  now(): number {
    return this.#clock.now();
  }

  waitedMs(): number {
    return this.#clock.now() - this.#startedAt;
  }

  request(): WaiterRequest {
    return { ...this.#asked, waitedMs: this.waitedMs() };
  }

  /** Ends the pause of the waiter, or its next one if it is asking just now. */
  notify(notice: Notice): void {
    if (this.#notice !== "woken") this.#notice = notice;
    this.#interrupt?.();
  }

  /** Ends the wait: the store failed for the waiter that asks in place of this one. */
  fail(fault: unknown): void {
    this.#fault = fault;
    this.#interrupt?.();
  }

  /** What was said before a request leaves is answered by it. */
  forgetNotice(): void {
    this.#notice = undefined;
  }

  /**
   * Waits for a notice, `delayMs` at most. Gives the notice, or `undefined` when the time was over.
   *
   * Rejects with the signal's reason when that aborts, and with what {@link fail} was given.
   */
  async pause(delayMs: number, signal: AbortSignalLike | undefined): Promise<Notice | undefined> {
    let cancel: CancelTimer | undefined;
    if (this.#notice === undefined && this.#fault === undefined) {
      const over = new Promise<void>((resolve) => {
        this.#interrupt = resolve;
        cancel = this.#clock.setTimer(delayMs, resolve);
      });
      try {
        await untilAborted(over, signal);
      } finally {
        cancel?.();
        this.#interrupt = undefined;
      }
    }
    if (this.#fault !== undefined) throw this.#fault;
    const notice = this.#notice;
    this.#notice = undefined;
    return notice;
  }
}
