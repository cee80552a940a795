import { CheckedStore } from "./checked-store.ts";
import { type Clock, systemClock } from "./clock.ts";
import { Lock } from "./lock.ts";
import { type Logger, processWarningLogger } from "./logger.ts";
import {
  checkFactoryOptions,
  checkKey,
  checkLockOptions,
  checkStore,
  type LockFactoryOptions,
  type LockOptions,
  resolveTtlMs,
} from "./options.ts";
import type { LockStore } from "./store.ts";

/** Makes locks on one store. An application has one, made where its store is made. */
export class LockFactory {
  readonly #store: CheckedStore;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #defaults: LockOptions;

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
  createLock(key: string, options: LockOptions = {}): Lock {
    const { ttlMs, fencing = false, ...wait } = { ...this.#defaults, ...checkLockOptions(options) };
    checkKey(key);
    if (fencing) this.#store.checkFencing(key);
    return new Lock(key, {
      store: this.#store,
      clock: this.#clock,
      logger: this.#logger,
      ttlMs: resolveTtlMs(ttlMs),
      fencing,
      wait,
    });
  }
}
