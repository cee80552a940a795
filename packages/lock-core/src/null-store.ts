import { type Logger, processWarningLogger } from "./logger.ts";
import type { AcquireResult, ExtendOutcome, OwnedKey, ReleaseOutcome, StoreReach } from "./store.ts";
import type { DemoteOutcome, PromoteResult, SharedLockStore } from "./store-capabilities.ts";

/**
 * Locking switched off: every lock is granted to everybody, in every mode, and nothing is kept or excluded. For tools and
 * tests in which nobody else can be there; it says so once, as a warning. It has no fencing tokens, and a lock that asks
 * for them is refused.
 *
 * Leases still end by their holder's own clock, so code that forgets to extend is found out here too.
 */
export class NullStore implements SharedLockStore {
  readonly name: string = "null (no locking)";
  readonly reach: StoreReach = "shared";
  readonly #logger: Logger;
  #hasWarned = false;

  constructor(options: NullStoreOptions = {}) {
    this.#logger = options.logger ?? processWarningLogger;
  }

  async acquire({ key }: OwnedKey): Promise<AcquireResult> {
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      this.#logger.warn(
        { key, store: this.name },
        "Locking is switched off: every lock is granted, nothing is excluded.",
      );
    }
    return { outcome: "granted" };
  }

  async extend(_request: OwnedKey): Promise<ExtendOutcome> {
    return "extended";
  }

  async release(_request: OwnedKey): Promise<ReleaseOutcome> {
    return "released";
  }

  async isHeld(_request: OwnedKey): Promise<boolean> {
    return true;
  }

  async promote(_request: OwnedKey): Promise<PromoteResult> {
    return { outcome: "promoted" };
  }

  async demote(_request: OwnedKey): Promise<DemoteOutcome> {
    return "demoted";
  }
}

/** Options of a {@link NullStore}. */
export interface NullStoreOptions {
  /**
   * Where the store says that it excludes nothing.
   * @default a warning of the process
   */
  readonly logger?: Logger | undefined;
}
