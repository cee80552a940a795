import type { AbortSignalLike } from "./abort-signal.ts";
import type { CancelTimer, Clock } from "./clock.ts";
import type { LockLostError } from "./errors.ts";

/**
 * The type of `lease.signal`: the `AbortSignal` of whatever declares one where the package is used (`@types/node`, the DOM
 * library), and the part of it that is used here where nothing does.
 */
export type LeaseSignal = typeof globalThis extends { readonly AbortSignal: { readonly prototype: infer Signal } }
  ? Signal
  : AbortSignalLike;

/** What is watched: a lease by its own clock. */
export interface Watched {
  /** Reports the loss when it finds the lease lapsed. */
  isExpired(): boolean;
  remainingMs(): number;
}

/** A signal that aborts when a lease is lost. A timer in the background finds out when it lapses. */
export class LossSignal {
  readonly #controller = new AbortController();
  readonly #lease: Watched;
  readonly #clock: Clock;
  #cancelTimer: CancelTimer | undefined;

  constructor(lease: Watched, clock: Clock) {
    this.#lease = lease;
    this.#clock = clock;
  }

  get signal(): LeaseSignal {
    return this.#controller.signal;
  }

  /** Looks again at the lease's end: to be called when it has become an earlier one. A later one needs no call. */
  watch(): void {
    this.stop();
    const wake = (): void => {
      if (!this.#lease.isExpired()) this.watch();
    };
    this.#cancelTimer = this.#clock.setTimer(this.#lease.remainingMs(), wake, { background: true });
  }

  abort(reason: LockLostError): void {
    this.stop();
    this.#controller.abort(reason);
  }

  /** From now on the signal does not abort by itself. */
  stop(): void {
    this.#cancelTimer?.();
  }
}
