import { isLockError, LockStoreError, type StoreOperation } from "./errors.ts";
import type {
  AcquireRequest,
  AcquireResult,
  ExtendOutcome,
  ExtendRequest,
  LockStore,
  OwnedKey,
  ReleaseOutcome,
  StoreReach,
} from "./store.ts";

/**
 * A store held to its contract: what it throws is always a `LockError`, and an answer that the contract does not know is
 * a `LockStoreError` instead of passing for contention or success.
 */
export class CheckedStore implements LockStore {
  readonly name: string;
  readonly reach: StoreReach;
  readonly #store: LockStore;

  constructor(store: LockStore) {
    this.name = store.name;
    this.reach = store.reach;
    this.#store = store;
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    try {
      const result = await this.#store.acquire(request);
      if (result?.outcome === "granted" || result?.outcome === "contended") return result;
      throw unknownAnswer(result);
    } catch (error) {
      throw this.#fault("acquire", request, error);
    }
  }

  async extend(request: ExtendRequest): Promise<ExtendOutcome> {
    try {
      const outcome = await this.#store.extend(request);
      if (outcome === "extended" || outcome === "lost") return outcome;
      throw unknownAnswer(outcome);
    } catch (error) {
      throw this.#fault("extend", request, error);
    }
  }

  async release(request: OwnedKey): Promise<ReleaseOutcome> {
    try {
      const outcome = await this.#store.release(request);
      if (outcome === "released" || outcome === "not-held") return outcome;
      throw unknownAnswer(outcome);
    } catch (error) {
      throw this.#fault("release", request, error);
    }
  }

  async isHeld(request: OwnedKey): Promise<boolean> {
    try {
      const held = await this.#store.isHeld(request);
      if (typeof held === "boolean") return held;
      throw unknownAnswer(held);
    } catch (error) {
      throw this.#fault("isHeld", request, error);
    }
  }

  #fault(operation: StoreOperation, { key }: OwnedKey, cause: unknown): Error {
    if (isLockError(cause)) return cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new LockStoreError({ store: this.name, operation, key, reason, cause });
  }
}

function unknownAnswer(answer: unknown): TypeError {
  return new TypeError(`the store answered ${JSON.stringify(answer)}, which the store contract does not know`);
}
