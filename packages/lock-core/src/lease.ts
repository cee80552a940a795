/// <reference lib="esnext.disposable" preserve="true" />
import type { Clock } from "./clock.ts";
import { LockLostError } from "./errors.ts";
import type { LogFields, Logger } from "./logger.ts";
import { resolveTtlMs } from "./options.ts";
import type { ExtendOutcome, LockStore, OwnedKey, ReleaseOutcome } from "./store.ts";

/**
 * How a lease stands, by what this process knows: `held` while its holder may go on; `lost` when it lapsed or was taken;
 * `released` once its holder gave it back in time. It leaves `held` once and never returns.
 */
export type LeaseStatus = "held" | "lost" | "released";

/** What every lease of one lock shares. */
export interface LeaseContext {
  readonly store: LockStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ttlMs: number;
}

/**
 * One grant of a lock to one owner, bounded in time. It holds until it is released or until its deadline, whichever
 * comes first.
 *
 * The deadline is kept on this process's monotonic clock and counted from before the request left, so that the holder
 * stops believing before the store grants the key to anybody else. `status`, `isExpired`, `remainingMs` and `assertHeld`
 * read that clock: they ask nobody, and are right even after a blocked event loop.
 *
 * `extend`, `isHeld` and `release` ask the store once each and may be called at any time, also at once: extending and
 * releasing take turns, and a lease that has been released is never extended.
 */
export class Lease implements AsyncDisposable {
  readonly #owned: OwnedKey;
  readonly #context: LeaseContext;
  #deadline: number;
  /** How the lease ended, once that is known. */
  #end: LeaseEnd | undefined;
  #releaseAnswered = false;
  /** The extend or release that was called last; the next one follows it. */
  #turn: Promise<unknown> | undefined;

  /** Leases are made by a lock's `tryAcquire`, `acquire` and `run`, with the deadline on the context's clock. */
  constructor(grant: { readonly owned: OwnedKey; readonly context: LeaseContext; readonly deadline: number }) {
    this.#owned = grant.owned;
    this.#context = grant.context;
    this.#deadline = grant.deadline;
  }

  /** The key of the lock. */
  get key(): string {
    return this.#owned.key;
  }

  /** How the lease stands, by this process's own knowledge. */
  get status(): LeaseStatus {
    return this.#endIfAny()?.status ?? "held";
  }

  /** Whether the holder must stop: the lease lapsed, was lost or was released. Once true, it stays true. */
  isExpired(): boolean {
    return this.#endIfAny() !== undefined;
  }

  /** Milliseconds until the deadline, possibly fractional; 0 once the lease has ended. */
  remainingMs(): number {
    return this.isExpired() ? 0 : Math.max(0, this.#deadline - this.#context.clock.now());
  }

  /**
   * Returns while the lease is held: to be called right before each step that must not run beside another holder.
   *
   * @throws LockLostError once the lease has ended, also by its holder's own release.
   */
  assertHeld(): void {
    const end = this.#endIfAny();
    if (end !== undefined) throw new LockLostError({ key: this.key, reason: end.reason });
  }

  /**
   * Asks the store whether this lease is still held, and finds out when it was taken away. False without asking once the
   * lease has ended.
   *
   * @throws LockStoreError when the store does not answer; the lease stands as it did.
   */
  async isHeld(): Promise<boolean> {
    if (this.isExpired()) return false;
    const held = await this.#context.store.isHeld(this.#owned);
    if (!held && !this.isExpired()) this.#lose(UNKNOWN_TO_STORE);
    return held && !this.isExpired();
  }

  /**
   * Sets the lease's remaining lifetime to `ttlMs`, by default that of the lock; it may shorten. `lost` when the lease has
   * ended: it is never revived. So is an answer that comes after the deadline, and the lease is then given back.
   *
   * @throws LockOptionsError for a `ttlMs` that cannot be, before anything is sent.
   * @throws LockStoreError on a fault. The lease goes on until the earlier of its old and its new deadline, since the
   * store may or may not have extended it.
   */
  async extend(ttlMs: number = this.#context.ttlMs): Promise<ExtendOutcome> {
    const newTtlMs = resolveTtlMs(ttlMs);
    return this.#inTurn(() => this.#extendNow(newTtlMs));
  }

  /**
   * Gives the lock back. `not-held` when the lease had lapsed or was taken, or was released before. The lease has ended
   * for this process as soon as this is called.
   *
   * @throws LockStoreError on a fault. The store then keeps the lease until its TTL ends; a second call tries again.
   */
  release(): Promise<ReleaseOutcome> {
    if (!this.isExpired()) this.#end = RELEASED;
    return this.#inTurn(() => this.#releaseNow());
  }

  /**
   * Releases the lease at the end of an `await using` scope, with one request at most. It never throws, so that an error
   * of the scope is the one that is seen: a failed release and a lease that was lost are logged as warnings.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (err) {
      this.#warn("The lock could not be released; it stays held until its TTL ends.", { err });
    }
  }

  async #extendNow(ttlMs: number): Promise<ExtendOutcome> {
    if (this.isExpired()) return "lost";
    const { clock, store } = this.#context;
    const newDeadline = clock.now() + ttlMs;
    // A shorter lifetime may count in the store as soon as the request is out, whatever becomes of the answer.
    this.#deadline = Math.min(this.#deadline, newDeadline);

    const outcome = await store.extend({ ...this.#owned, ttlMs });
    if (this.isExpired()) {
      // Nobody may believe in it any more, so it must not stay in the store either.
      if (outcome === "extended") void this[Symbol.asyncDispose]();
      return "lost";
    }
    if (outcome === "lost") this.#lose(UNKNOWN_TO_STORE);
    else this.#deadline = newDeadline;
    return outcome;
  }

  async #releaseNow(): Promise<ReleaseOutcome> {
    if (this.#releaseAnswered) return "not-held";
    const outcome = await this.#context.store.release(this.#owned);
    this.#releaseAnswered = true;
    if (outcome === "not-held" && this.status === "released") this.#lose(UNKNOWN_TO_STORE);
    return outcome;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn === undefined ? work() : this.#turn.then(work, work);
    this.#turn = turn;
    return turn;
  }

  #endIfAny(): LeaseEnd | undefined {
    if (this.#end === undefined && this.#context.clock.now() >= this.#deadline) this.#lose(LAPSED);
    return this.#end;
  }

  #lose(end: LeaseEnd): void {
    this.#end = end;
    this.#warn("A lease was lost before it was released.", { reason: end.reason });
  }

  #warn(message: string, fields: LogFields): void {
    const { logger, store } = this.#context;
    logger.warn({ ...fields, key: this.key, store: store.name }, message);
  }
}

interface LeaseEnd {
  readonly status: "lost" | "released";
  readonly reason: string;
}

const RELEASED: LeaseEnd = { status: "released", reason: "it had been released" };
const LAPSED: LeaseEnd = { status: "lost", reason: "its lifetime was over" };
const UNKNOWN_TO_STORE: LeaseEnd = { status: "lost", reason: "the store no longer knew it" };
