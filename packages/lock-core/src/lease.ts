/// <reference lib="esnext.disposable" preserve="true" />
import { AutoExtend } from "./auto-extend.ts";
import { LockLostError, LockOptionsError } from "./errors.ts";
import { HELD_TOO_LONG, LAPSED, type LeaseEnd, RELEASED, UNKNOWN_TO_STORE } from "./lease-end.ts";
import type { LeaseContext, LeaseGrant } from "./lease-grant.ts";
import { type EventChannel, type LeaseEvent, lockEvents } from "./lock-events.ts";
import type { LogFields } from "./logger.ts";
import { type LeaseSignal, LossSignal } from "./loss-signal.ts";
import { resolveTtlMs } from "./options.ts";
import type { SerialisedLease } from "./serialised-lease.ts";
import type { ExtendOutcome, ExtendRequest, LockMode, OwnedKey, ReleaseOutcome } from "./store.ts";
import type { DemoteOutcome, PromoteResult } from "./store-capabilities.ts";

/**
 * How a lease stands, by what this process knows: `held` while its holder may go on; `lost` when it lapsed or was taken;
 * `released` once its holder gave it back in time. It leaves `held` once and never returns.
 */
export type LeaseStatus = "held" | "lost" | "released";

/**
 * What came of a promotion: the lease is exclusive now; or other readers are there, and it stays the shared lease that it
 * was; or it has ended.
 */
export type PromoteOutcome = PromoteResult["outcome"];

/**
 * One grant of a lock to one owner, bounded in time. It holds until it is released or until its deadline, whichever
 * comes first.
 *
 * The deadline is kept on this process's monotonic clock and counted from before the request left, so that the holder
 * stops believing before the store grants the key to anybody else. `status`, `isExpired`, `remainingMs` and `assertHeld`
 * read that clock: they ask nobody, and are right even after a blocked event loop.
 *
 * `extend`, `promote`, `demote`, `isHeld` and `release` ask the store once each and may be called at any time, also at
 * once: all but `isHeld` take turns, and a lease that has been released is never extended.
 */
export class Lease implements AsyncDisposable {
  readonly #owned: OwnedKey;
  readonly #context: LeaseContext;
  /** When the request that it was granted by had left. */
  readonly #sentAt: number;
  #deadline: number;
  #mode: LockMode;
  #fencingToken: bigint | undefined;
  /** Set from when a change of mode is asked for until an answer tells which mode the store keeps. */
  #modeInDoubt = false;
  /** How the lease ended, once that is known. */
  #end: LeaseEnd | undefined;
  #releaseAnswered = false;
  /** The request that was called last, other than isHeld; the next one follows it. */
  #turn: Promise<unknown> | undefined;
  #autoExtend: AutoExtend | undefined;
  #lossSignal: LossSignal | undefined;

  /** Leases are made by a lock's `tryAcquire`, `acquire` and `run`. */
  constructor({ owned, context, sentAt, deadline, mode, fencingToken }: LeaseGrant) {
    this.#owned = owned;
    this.#context = context;
    this.#sentAt = sentAt;
    this.#deadline = Math.min(deadline, this.#holdEndsAt);
    this.#mode = mode;
    this.#fencingToken = fencingToken;
    if (context.hold.autoExtend && this.#deadline < this.#holdEndsAt) this.#startAutoExtend();
  }

  /** The key of the lock. */
  get key(): string {
    return this.#owned.key;
  }

  /**
   * Whether other shared leases may be there beside this one. `exclusive` on a store without shared locks, whatever was
   * asked for.
   */
  get mode(): LockMode {
    return this.#mode;
  }

  /**
   * The token to guard writes with, on a lock made with `fencing: true`; otherwise `undefined`. Larger than the token of
   * every earlier exclusive lease of the key. A shared lease has one that is at least the last writer's and below the
   * next one's. Extending keeps it, and so does demoting; promoting replaces it by a new one.
   */
  get fencingToken(): bigint | undefined {
    return this.#fencingToken;
  }

  /**
   * Aborts when the lease is lost, with a `LockLostError` as its reason: for work that takes a signal. It does not abort
   * by the holder's own release. Like every timer it is late while the event loop is blocked; `assertHeld` is not.
   */
  get signal(): LeaseSignal {
    if (this.#lossSignal === undefined) {
      const end = this.#endIfAny();
      this.#lossSignal = new LossSignal(this, this.#context.clock);
      if (end === undefined) this.#lossSignal.watch();
      else if (end.status === "lost") this.#lossSignal.abort(this.#lostError(end));
    }
    return this.#lossSignal.signal;
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
    if (end !== undefined) throw this.#lostError(end);
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
   * Makes a shared lease exclusive, in one step and with `ttlMs` left from now, if it is the only one on the key. With
   * others there it says `contended` at once and stays as it was, a shared lease with its old end. `lost` when the lease
   * has ended: it is not acquired anew. An exclusive lease stays one and is extended.
   *
   * Two readers that both keep their lease and wait to be promoted wait for each other: one of them has to release.
   *
   * @throws LockOptionsError, LockStoreError as `extend` does. After a fault the lease counts as shared; the next
   * `extend` makes sure that the store keeps it so.
   */
  async promote(ttlMs: number = this.#context.ttlMs): Promise<PromoteOutcome> {
    const newTtlMs = resolveTtlMs(ttlMs);
    return this.#inTurn(() => this.#promoteNow(newTtlMs));
  }

  /**
   * Makes an exclusive lease shared, in one step and with `ttlMs` left from now: other readers may join, and no writer can
   * have been there in between. `lost` when the lease has ended. A shared lease stays one and is extended. On a store
   * without shared locks it stays exclusive.
   *
   * @throws LockOptionsError, LockStoreError as `extend` does. After a fault the lease counts as shared; the next
   * `extend` makes sure that the store keeps it so.
   */
  async demote(ttlMs: number = this.#context.ttlMs): Promise<DemoteOutcome> {
    const newTtlMs = resolveTtlMs(ttlMs);
    return this.#inTurn(() => this.#demoteNow(newTtlMs));
  }

  /**
   * Gives the lock back. `not-held` when the lease had lapsed or was taken, or was released before. The lease has ended
   * for this process as soon as this is called.
   *
   * @throws LockStoreError on a fault. The store then keeps the lease until its TTL ends; a second call tries again.
   */
  release(): Promise<ReleaseOutcome> {
    if (!this.isExpired()) this.#finish(RELEASED);
    return this.#inTurn(() => this.#releaseNow());
  }

  /**
   * The lease for another process, for `JSON.stringify(lease)` there and `locks.restore` here: the one that restores it
   * owns it. From then on this object must neither extend nor release it, and must not be in an `await using` scope. What
   * it gives holds the owner token, a secret.
   *
   * @throws LockOptionsError when the store is one of this process alone.
   * @throws LockLostError once the lease has ended.
   */
  toJSON(): SerialisedLease {
    const { name, reach } = this.#context.store;
    const { key, owner } = this.#owned;
    if (reach === "process") {
      const expected = "one that other processes share, to give a lease away";
      throw new LockOptionsError({ option: "store", value: name, expected, key });
    }
    this.assertHeld();
    const deadlineMs = Math.floor(Date.now() + this.remainingMs());
    const lease = { version: 1, key, owner, mode: this.#mode, deadlineMs } as const;
    return this.#fencingToken === undefined ? lease : { ...lease, fencingToken: String(this.#fencingToken) };
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
    const { store } = this.#context;
    if (this.#modeInDoubt) {
      // The store may keep it as an exclusive lease, which an extend would prolong.
      return (await this.#demoteNow(ttlMs)) === "demoted" ? "extended" : "lost";
    }
    const outcome = await this.#renew(ttlMs, (request) => store.extend(request));
    if (outcome === "extended") this.#tell(lockEvents.extended);
    return outcome;
  }

  async #promoteNow(ttlMs: number): Promise<PromoteOutcome> {
    const { store, fencing } = this.#context;
    let fencingToken: bigint | undefined;
    const outcome = await this.#renew(ttlMs, async (request): Promise<PromoteOutcome> => {
      this.#modeInDoubt = store.sharesLocks && this.#mode === "shared";
      const result = await store.promote({ ...request, fencing });
      this.#modeInDoubt = false;
      if (result.outcome === "promoted") fencingToken = result.fencingToken;
      return result.outcome;
    });
    if (outcome === "promoted") {
      this.#mode = "exclusive";
      this.#fencingToken = fencingToken ?? this.#fencingToken;
      this.#tell(lockEvents.promoted);
    }
    return outcome;
  }

  async #demoteNow(ttlMs: number): Promise<DemoteOutcome> {
    const outcome = await this.#renew(ttlMs, (request) => this.#askToDemote(request));
    if (outcome === "demoted") this.#tell(lockEvents.demoted);
    return outcome;
  }

  async #askToDemote(request: ExtendRequest): Promise<DemoteOutcome> {
    const { store } = this.#context;
    // Other readers may come in as soon as the request is out, whatever becomes of the answer.
    if (store.sharesLocks) this.#mode = "shared";
    this.#modeInDoubt = store.sharesLocks;
    const outcome = await store.demote(request);
    this.#modeInDoubt = false;
    return outcome;
  }

  /** Asks the store for a new end of the lease, and keeps the deadline by what becomes of that. */
  async #renew<T extends string>(ttlMs: number, ask: (request: ExtendRequest) => Promise<T>): Promise<T | "lost"> {
    if (this.isExpired()) return "lost";
    const now = this.#context.clock.now();
    const leftMs = Math.min(ttlMs, Math.ceil(this.#holdEndsAt - now));
    const oldDeadline = this.#deadline;
    const newDeadline = Math.min(now + this.#context.store.validityMs(leftMs), this.#holdEndsAt);
    // A shorter lifetime may count in the store as soon as the request is out, whatever becomes of the answer.
    if (newDeadline < oldDeadline) this.#shorten(newDeadline);

    const outcome = await ask({ ...this.#owned, ttlMs: leftMs });
    if (this.isExpired()) {
      // Nobody may believe in it any more, so it must not stay in the store either.
      if (outcome !== "lost") void this[Symbol.asyncDispose]();
      return "lost";
    }
    if (outcome === "lost") this.#lose(UNKNOWN_TO_STORE);
    else this.#deadline = outcome === "contended" ? oldDeadline : newDeadline;
    return outcome;
  }

  async #releaseNow(): Promise<ReleaseOutcome> {
    if (this.#releaseAnswered) return "not-held";
    const outcome = await this.#context.store.queues.release(this.#owned);
    this.#releaseAnswered = true;
    if (this.status === "released") {
      if (outcome === "released") this.#tell(lockEvents.released);
      else this.#lose(UNKNOWN_TO_STORE);
    }
    return outcome;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn === undefined ? work() : this.#turn.then(work, work);
    this.#turn = turn;
    return turn;
  }

  get #holdEndsAt(): number {
    return this.#sentAt + this.#context.hold.maxHoldMs;
  }

  #startAutoExtend(): void {
    const { clock, ttlMs } = this.#context;
    const onFault = (err: unknown): void => {
      this.#warn("A lease could not be extended; it is tried again until it ends.", { err });
    };
    this.#autoExtend = new AutoExtend(this, { clock, ttlMs, holdEndsAt: this.#holdEndsAt, onFault });
    this.#autoExtend.plan();
  }

  #shorten(deadline: number): void {
    this.#deadline = deadline;
    this.#autoExtend?.plan();
    this.#lossSignal?.watch();
  }

  #endIfAny(): LeaseEnd | undefined {
    if (this.#end === undefined && this.#context.clock.now() >= this.#deadline) {
      this.#lose(this.#deadline < this.#holdEndsAt ? LAPSED : HELD_TOO_LONG);
    }
    return this.#end;
  }

  /** What runs in the background ends with the lease. */
  #finish(end: LeaseEnd): void {
    this.#end = end;
    this.#autoExtend?.stop();
    this.#lossSignal?.stop();
  }

  #lostError({ reason }: LeaseEnd): LockLostError {
    return new LockLostError({ key: this.key, reason });
  }

  #lose(end: LeaseEnd): void {
    this.#finish(end);
    this.#lossSignal?.abort(this.#lostError(end));
    this.#warn("A lease was lost before it was released.", { reason: end.reason });
    if (lockEvents.lost.hasSubscribers) lockEvents.lost.publish({ ...this.#facts(), reason: end.reason });
  }

  #tell(channel: EventChannel<LeaseEvent>): void {
    if (channel.hasSubscribers) channel.publish(this.#facts());
  }

  #facts(): LeaseEvent {
    const { store, clock } = this.#context;
    return { key: this.key, store: store.name, mode: this.#mode, holdMs: clock.now() - this.#sentAt };
  }

  #warn(message: string, fields: LogFields): void {
    const { logger, store } = this.#context;
    logger.warn({ ...fields, key: this.key, store: store.name }, message);
  }
}
