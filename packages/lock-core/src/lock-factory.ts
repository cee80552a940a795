import { CheckedStore } from "./checked-store.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Lease } from "./lease.ts";
import { Lock, type LockContext } from "./lock.ts";
import { type Logger, processWarningLogger } from "./logger.ts";
import {
  areSameLockOptions,
  checkFactoryOptions,
  checkKey,
  checkLockOptions,
  checkRestoreOptions,
  checkStore,
  type LockFactoryOptions,
  type LockOptions,
  NO_OPTIONS,
  type RestoreOptions,
  resolveHold,
  resolveTtlMs,
} from "./options.ts";
import { restoreLease } from "./restore-lease.ts";
import type { SerialisedLease } from "./serialised-lease.ts";
import type { LockStore, ReleaseOutcome } from "./store.ts";
import type { LockSnapshot } from "./store-capabilities.ts";

/** Makes locks on one store. An application has one, made where its store is made. */
export class LockFactory {
  readonly #store: CheckedStore;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #defaults: LockOptions;
  /** The options of the lock that was made last: the next one with the same shares what they come to. */
  #last: { readonly options: LockOptions; readonly context: LockContext } | undefined;

  /** @throws LockOptionsError for an option that cannot be honoured or is not known. */
  constructor(store: LockStore, options: LockFactoryOptions = {}) {
    const { clock = systemClock, logger = processWarningLogger, ...defaults } = checkFactoryOptions(options);
    this.#store = new CheckedStore(checkStore(store));
    this.#clock = clock;
    this.#logger = logger;
    this.#defaults = defaults;
  }

  /**
   * A lock over `key`, which may be any well-formed string. Nothing is sent: the lock holds nothing until it is acquired.
   * Locks with the same key on the same backend exclude each other, in whatever process.
   *
   * @throws LockOptionsError for an option that cannot be honoured or is not known, `fencing` on a store without fencing
   * tokens among them.
   */
  createLock(key: string, options: LockOptions = NO_OPTIONS): Lock {
    const context = this.#contextFor(checkLockOptions(options));
    checkKey(key);
    if (context.fencing) this.#store.checkFencing(key);
    return new Lock(key, context);
  }

  /**
   * Takes over a lease that another process gave away as JSON: text, or what was parsed from it. Confirms it in the store,
   * in its mode and with a new end. `undefined` when it has ended meanwhile, or when it is to be exclusive and others
   * share the key by now.
   *
   * @throws LockOptionsError for what is no serialised lease, and on a store whose leases end with their process.
   * @throws LockStoreError on a fault; the lease stands in the store as it did, and can be restored later.
   */
  async restore(lease: string | SerialisedLease, options: RestoreOptions = {}): Promise<Lease | undefined> {
    const { ttlMs, ...hold } = { ...this.#defaults, ...checkRestoreOptions(options) };
    return restoreLease(lease, {
      store: this.#store,
      clock: this.#clock,
      logger: this.#logger,
      ttlMs: resolveTtlMs(ttlMs),
      hold: resolveHold(hold),
    });
  }

  /**
   * For operators: how the key is held now, by how many and for how long. It tells no owner tokens and changes nothing.
   *
   * @throws LockOptionsError on a store that cannot be inspected.
   */
  async inspect(key: string): Promise<LockSnapshot> {
    return this.#store.inspect({ key: checkKey(key) });
  }

  /**
   * For operators: frees the key, whoever holds it. The holders find out at their next extend, `isHeld` or release, and
   * may work on until then. `not-held` when nobody held it.
   *
   * @throws LockOptionsError on a store that cannot be inspected.
   */
  async forceRelease(key: string): Promise<ReleaseOutcome> {
    const outcome = await this.#store.forceRelease({ key: checkKey(key) });
    if (outcome === "released") this.#logger.warn({ key, store: this.#store.name }, "A lock was released by force.");
    return outcome;
  }

  #contextFor(options: LockOptions): LockContext {
    if (this.#last === undefined || !areSameLockOptions(this.#last.options, options)) {
      this.#last = { options, context: this.#resolve(options) };
    }
    return this.#last.context;
  }

  #resolve(options: LockOptions): LockContext {
    const { ttlMs, fencing = false, autoExtend, maxHoldMs, ...wait } = { ...this.#defaults, ...options };
    return {
      store: this.#store,
      clock: this.#clock,
      logger: this.#logger,
      ttlMs: resolveTtlMs(ttlMs),
      fencing,
      hold: resolveHold({ autoExtend, maxHoldMs }),
      wait,
    };
  }
}
