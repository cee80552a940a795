import type { CheckedStore } from "./checked-store.ts";
import type { Clock } from "./clock.ts";
import type { Logger } from "./logger.ts";
import type { ResolvedHold } from "./options.ts";
import type { LockMode, OwnedKey } from "./store.ts";

/** What every lease of one lock shares. */
export interface LeaseContext {
  readonly store: CheckedStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ttlMs: number;
  readonly fencing: boolean;
  readonly hold: ResolvedHold;
}

/** What a lease starts from: one grant of the store. */
export interface LeaseGrant {
  readonly owned: OwnedKey;
  readonly context: LeaseContext;
  /** When the request left, and when the lease ends: on the context's clock. */
  readonly sentAt: number;
  readonly deadline: number;
  readonly mode: LockMode;
  readonly fencingToken: bigint | undefined;
}
