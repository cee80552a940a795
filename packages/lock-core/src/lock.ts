import { type AbortSignalLike, untilAborted } from "./abort-signal.ts";
import { LockStoreError, LockTimeoutError } from "./errors.ts";
import { Lease } from "./lease.ts";
import type { LeaseContext } from "./lease-grant.ts";
import { type EventChannel, lockEvents, type WaitEvent } from "./lock-events.ts";
import type { LogFields } from "./logger.ts";
import {
  type AcquireOptions,
  checkAcquireOptions,
  checkTryAcquireOptions,
  NO_OPTIONS,
  type ResolvedWait,
  resolveWait,
  type TryAcquireOptions,
  type WaitOptions,
} from "./options.ts";
import { createOwnerToken } from "./owner-token.ts";
import type { AcquireRequest, AcquireResult, LockMode, OwnedKey } from "./store.ts";
import { type WaitResult, waitFor } from "./wait.ts";
import { Waiter } from "./waiter.ts";

/** What a lock works with: all of it checked and resolved when the lock was created. */
export interface LockContext extends LeaseContext {
  readonly wait: WaitOptions;
}

/**
 * An exclusion over one key. By itself it holds nothing: each acquisition gives a lease of its own, with an owner of its
 * own. One lock may be used any number of times and concurrently; it is not re-entrant.
 */
export class Lock {
  /** The resource being excluded on. */
  readonly key: string;
  readonly #context: LockContext;

  /** Locks are made by `LockFactory.createLock`. */
  constructor(key: string, context: LockContext) {
    this.key = key;
    this.#context = context;
  }

  /**
   * Asks the store once: a lease, or `undefined` when somebody else holds the lock, in a mode that stands against the one
   * asked for.
   *
   * @throws LockStoreError on a fault of the store, or when its grant came too late to be used (it is then given back).
   * @throws LockKeyConflictError when something that is no lock lies under the key.
   */
  async tryAcquire(options: TryAcquireOptions = NO_OPTIONS): Promise<Lease | undefined> {
    const asked = checkTryAcquireOptions(options);
    const attempt = this.#begin(createOwnerToken(), asked);
    const lease = this.#end(attempt, await attempt.answer);
    if (lease !== undefined && lockEvents.acquired.hasSubscribers) {
      this.#tell(lockEvents.acquired, this.#triedOnce(lease, attempt.askedAt), asked);
    }
    return lease;
  }

  /**
   * Waits for the lock: asks, and asks again while somebody else holds it, until a limit of the options is reached. The
   * lease's lifetime starts at the attempt that won.
   *
   * @throws LockTimeoutError when a limit was reached.
   * @throws LockStoreError, LockKeyConflictError as `tryAcquire` does, at once: only a held lock is waited for.
   */
  async acquire(options: AcquireOptions = NO_OPTIONS): Promise<Lease> {
    const { mode, signal, autoExtend, maxHoldMs, ...ownLimits } = checkAcquireOptions(options);
    const asked = { mode, signal, autoExtend, maxHoldMs };
    const limits = resolveWait({ ...this.#context.wait, ...ownLimits });
    const waited = isSingleAttempt(limits) ? await this.#once(asked) : await this.#wait(asked, limits);
    if (waited.value !== undefined) {
      this.#tell(lockEvents.acquired, waited, asked);
      return waited.value;
    }
    this.#tell(lockEvents["timed-out"], waited, asked);
    throw new LockTimeoutError({ key: this.key, waitedMs: waited.waitedMs, attempts: waited.attempts });
  }

  /**
   * Acquires the lock as `acquire` does, runs `body`, and releases the lock whatever happens. Gives the body's result, or
   * throws the body's error: a release that fails is logged as a warning and changes neither.
   *
   * @throws LockLostError when the body came to its end but its lease had not lasted until then: what it did may have run
   * beside another holder.
   */
  async run<T>(body: (lease: Lease) => T | PromiseLike<T>, options: AcquireOptions = NO_OPTIONS): Promise<T> {
    const lease = await this.acquire(options);
    let result: T;
    try {
      result = await body(lease);
    } finally {
      await lease[Symbol.asyncDispose]();
    }
    if (lease.status === "lost") lease.assertHeld();
    return result;
  }

  /** Nobody is waited for, so there is no place in line either. */
  async #once(options: TryAcquireOptions): Promise<WaitResult<Lease>> {
    const startedAt = this.#context.clock.now();
    return this.#triedOnce(await this.#attempt(createOwnerToken(), options), startedAt);
  }

  #triedOnce(value: Lease | undefined, startedAt: number): WaitResult<Lease> {
    return { value, waitedMs: this.#context.clock.now() - startedAt, attempts: 1 };
  }

  #tell(channel: EventChannel<WaitEvent>, waited: WaitResult<Lease>, { mode = "exclusive" }: TryAcquireOptions): void {
    if (!channel.hasSubscribers) return;
    const { value, waitedMs, attempts } = waited;
    const { name: store } = this.#context.store;
    channel.publish({ key: this.key, store, mode: value?.mode ?? mode, waitMs: waitedMs, attempts });
  }

  async #wait(options: TryAcquireOptions, limits: ResolvedWait): Promise<WaitResult<Lease>> {
    const { signal, mode, maxHoldMs } = options;
    if (signal?.aborted) throw signal.reason;
    const { store, clock, fencing } = this.#context;
    const owner = createOwnerToken();
    const asked = { key: this.key, owner, ttlMs: this.#ttlMs(maxHoldMs), mode: this.#storeMode(mode), fencing };
    const waiter = new Waiter(asked, clock);
    const queue = store.queues.join(this.key, waiter);
    let lease: Lease | undefined;
    try {
      const ask = (asked: AcquireRequest) => queue.ask(waiter, asked);
      const waited = await waitFor(() => this.#attempt(owner, options, ask), {
        ...limits,
        waiter,
        isFirst: () => queue.isFirst(waiter),
        signal,
      });
      lease = waited.value;
      return waited;
    } finally {
      queue.leave(waiter, lease?.mode);
    }
  }

  /**
   * The mode to ask for. A store without shared locks is not asked for them even where it passes requests on to one that
   * has: what it granted could not be told from an exclusive lease.
   */
  #storeMode(mode: LockMode | undefined): LockMode | undefined {
    return this.#context.store.sharesLocks ? mode : undefined;
  }

  #ttlMs(maxHoldMs = this.#context.hold.maxHoldMs): number {
    return Math.min(this.#context.ttlMs, maxHoldMs);
  }

  async #attempt(owner: string, options: TryAcquireOptions, ask?: Ask): Promise<Lease | undefined> {
    const attempt = this.#begin(owner, options, ask);
    return this.#end(attempt, await attempt.answer);
  }

  #begin(owner: string, options: TryAcquireOptions, ask?: Ask): Attempt {
    const { store, clock, fencing } = this.#context;
    const { mode, signal, maxHoldMs } = options;
    if (signal?.aborted) throw signal.reason;
    const askedAt = clock.now();
    const asked = { key: this.key, owner, ttlMs: this.#ttlMs(maxHoldMs), mode: this.#storeMode(mode), fencing };
    const answer: Promise<Answer> = ask === undefined ? store.acquire(asked) : ask(asked);
    return {
      asked,
      options,
      askedAt,
      answer: signal === undefined ? answer : this.#unlessAborted(answer, signal, asked),
    };
  }

  #end({ asked, options, askedAt }: Attempt, result: Answer): Lease | undefined {
    const { store, clock, hold } = this.#context;
    const { mode, autoExtend = hold.autoExtend, maxHoldMs = hold.maxHoldMs } = options;
    if (result.outcome === "contended") {
      this.#debug("The lock is held by someone else.");
      if (lockEvents.contended.hasSubscribers) {
        lockEvents.contended.publish({ key: this.key, store: store.name, mode: mode ?? "exclusive" });
      }
      return undefined;
    }
    const { owner, ttlMs } = asked;
    const owned: OwnedKey = { key: this.key, owner };
    const { fencingToken, sentAt = askedAt } = result;
    const validityMs = store.validityMs(ttlMs);
    const deadline = sentAt + validityMs;
    const answeredAt = clock.now();
    if (answeredAt >= deadline) {
      void this.#giveBack(owned);
      const reason = `its grant took ${Math.round(answeredAt - sentAt)} ms, longer than the lease of ${Math.floor(validityMs)} ms lasts. Give the lock a longer ttlMs.`;
      throw new LockStoreError({ key: this.key, store: store.name, operation: "acquire", reason });
    }
    const grantedMode = this.#storeMode(mode) ?? "exclusive";
    this.#debug(
      mode === "shared" && grantedMode === "exclusive"
        ? "The store has no shared locks: the lock was acquired exclusively."
        : "The lock was acquired.",
    );
    const isOwnHold = autoExtend !== hold.autoExtend || maxHoldMs !== hold.maxHoldMs;
    return new Lease({
      owned,
      context: isOwnHold ? { ...this.#context, hold: { autoExtend, maxHoldMs } } : this.#context,
      sentAt,
      deadline,
      mode: grantedMode,
      fencingToken,
    });
  }

  async #unlessAborted(answer: Promise<Answer>, signal: AbortSignalLike, { key, owner }: OwnedKey): Promise<Answer> {
    try {
      return await untilAborted(answer, signal);
    } catch (error) {
      if (signal.aborted) void this.#giveBackWhenGranted({ key, owner }, answer);
      throw error;
    }
  }

  /** For a caller that aborted and left: what its request may still be granted is given back, unless the store failed. */
  async #giveBackWhenGranted(owned: OwnedKey, answer: Promise<AcquireResult>): Promise<void> {
    const result = await answer.catch((err: unknown) => {
      this.#debug("An acquire failed after its caller had aborted it.", { err });
      return undefined;
    });
    if (result?.outcome === "granted") await this.#giveBack(owned);
  }

  async #giveBack(owned: OwnedKey): Promise<void> {
    const { logger, store } = this.#context;
    try {
      const outcome = await store.queues.release(owned);
      this.#debug("A grant that nobody waits for was given back.", { outcome });
    } catch (err) {
      const fields = { key: this.key, store: store.name, err };
      logger.warn(fields, "A grant that nobody waits for could not be given back; it stays held until its TTL ends.");
    }
  }

  #debug(message: string, fields?: LogFields): void {
    const { logger, store } = this.#context;
    const facts = { key: this.key, store: store.name };
    logger.debug(fields === undefined ? facts : { ...fields, ...facts }, message);
  }
}

/** One request to the store that is under way. */
interface Attempt {
  readonly asked: AcquireRequest;
  readonly options: TryAcquireOptions;
  /** On the lock's clock. */
  readonly askedAt: number;
  readonly answer: Promise<Answer>;
}

/** What an attempt is answered by, and when its request left if that was before the attempt. */
type Answer = AcquireResult & { readonly sentAt?: number };
type Ask = (asked: AcquireRequest) => Promise<Answer>;

function isSingleAttempt({ waitTimeoutMs, maxAttempts }: ResolvedWait): boolean {
  return waitTimeoutMs === 0 || maxAttempts === 1;
}
