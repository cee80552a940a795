import { isLockError, type LockError, LockOptionsError, LockStoreError, type StoreOperation } from "./errors.ts";
import { LocalQueues } from "./local-queue.ts";
import { lockEvents } from "./lock-events.ts";
import { PlaceOutsideLine } from "./place-outside-line.ts";
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
import {
  type DemoteOutcome,
  type DriftingStore,
  hasDrift,
  hasFencing,
  hasInspection,
  hasSharedLocks,
  type InspectableStore,
  type KeyRequest,
  type LockSnapshot,
  type PromoteRequest,
  type PromoteResult,
} from "./store-capabilities.ts";
import {
  hasWaitQueue,
  type PlaceAcquireResult,
  type PlaceReleaseRequest,
  type PlaceReleaseResult,
  type PlaceRequest,
  type WaiterRequest,
  type WaitPlace,
} from "./wait-queue.ts";

/**
 * A store held to its contract: what it throws is always a `LockError`, and an answer that the contract does not know is
 * a `LockStoreError` instead of passing for contention or success.
 *
 * It has every capability's methods, and answers for a store that lacks one: where there are no shared locks, all leases
 * are exclusive ones, so that promoting and demoting only sets their end anew; what cannot be replaced is refused.
 */
export class CheckedStore implements LockStore {
  readonly name: string;
  readonly reach: StoreReach;
  /** Whether the store has shared locks; otherwise `mode: "shared"` is granted as an exclusive lease. */
  readonly sharesLocks: boolean;
  /** Who waits in this process, by whichever factory on the store. */
  readonly queues: LocalQueues;
  readonly #store: LockStore;
  readonly #drifting: DriftingStore | undefined;

  constructor(store: LockStore) {
    this.name = store.name;
    this.reach = store.reach;
    this.sharesLocks = hasSharedLocks(store);
    this.#store = store;
    this.#drifting = hasDrift(store) ? store : undefined;
    this.queues = QUEUES.get(store) ?? new LocalQueues(this);
    QUEUES.set(store, this.queues);
  }

  /** @throws LockOptionsError when grants of the key cannot carry fencing tokens. */
  checkFencing(key: string): void {
    if (!hasFencing(this.#store)) {
      const expected = `left out, or false: the ${this.name} store has no fencing tokens`;
      throw new LockOptionsError({ option: "fencing", value: true, expected, key });
    }
    this.#store.checkFencing(key);
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    try {
      return checkedGrant(await this.#store.acquire(request), request);
    } catch (error) {
      throw this.#fault("acquire", request, error);
    }
  }

  /** A place outside of any line where the store keeps none: it asks and releases as anybody does. */
  openPlace(request: PlaceRequest): WaitPlace {
    const store = this.#store;
    if (!hasWaitQueue(store)) return new PlaceOutsideLine(this);
    const place = store.openPlace(request);
    return {
      acquire: (asked) => this.#acquireFrom(place, asked),
      release: (asked) => this.#releaseBy(place, asked),
      leave: () => place.leave(),
    };
  }

  async #acquireFrom(place: WaitPlace, request: WaiterRequest): Promise<PlaceAcquireResult> {
    try {
      return checkedGrant(await place.acquire(request), request);
    } catch (error) {
      throw this.#fault("acquire", request, error);
    }
  }

  async #releaseBy(place: WaitPlace, request: PlaceReleaseRequest): Promise<PlaceReleaseResult> {
    try {
      const result = await place.release(request);
      checkedRelease(result?.outcome);
      return result;
    } catch (error) {
      throw this.#fault("release", request, error);
    }
  }

  /** For how long a holder may count on a lease of `ttlMs`, from when the request left. */
  validityMs(ttlMs: number): number {
    return this.#drifting === undefined ? ttlMs : this.#drifting.validityMs(ttlMs);
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
      return checkedRelease(await this.#store.release(request));
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

  async promote(request: PromoteRequest): Promise<PromoteResult> {
    const store = this.#store;
    if (!hasSharedLocks(store)) return { outcome: (await this.extend(request)) === "lost" ? "lost" : "promoted" };
    try {
      const result = await store.promote(request);
      if (result?.outcome === "contended" || result?.outcome === "lost") return result;
      if (result?.outcome === "promoted" && carriesToken(result, request)) return result;
      throw unknownAnswer(result);
    } catch (error) {
      throw this.#fault("promote", request, error);
    }
  }

  async demote(request: ExtendRequest): Promise<DemoteOutcome> {
    const store = this.#store;
    if (!hasSharedLocks(store)) return (await this.extend(request)) === "lost" ? "lost" : "demoted";
    try {
      const outcome = await store.demote(request);
      if (outcome === "demoted" || outcome === "lost") return outcome;
      throw unknownAnswer(outcome);
    } catch (error) {
      throw this.#fault("demote", request, error);
    }
  }

  async inspect(request: KeyRequest): Promise<LockSnapshot> {
    try {
      const snapshot = await this.#inspectable().inspect(request);
      if (SNAPSHOT_MODES.has(snapshot?.mode) && Array.isArray(snapshot.holders)) return snapshot;
      throw unknownAnswer(snapshot);
    } catch (error) {
      throw this.#fault("inspect", request, error);
    }
  }

  async forceRelease(request: KeyRequest): Promise<ReleaseOutcome> {
    try {
      return checkedRelease(await this.#inspectable().forceRelease(request));
    } catch (error) {
      throw this.#fault("forceRelease", request, error);
    }
  }

  #inspectable(): InspectableStore {
    const store = this.#store;
    if (hasInspection(store)) return store;
    throw new LockOptionsError({ option: "store", value: this.name, expected: "one that can be inspected" });
  }

  #fault(operation: StoreOperation, { key }: KeyRequest, cause: unknown): LockError {
    const error = isLockError(cause) ? cause : this.#wrap(operation, key, cause);
    const { failed } = lockEvents;
    if (failed.hasSubscribers && error.code !== "LOCK_INVALID_OPTION") {
      failed.publish({ key, store: this.name, operation, error });
    }
    return error;
  }

  #wrap(operation: StoreOperation, key: string, cause: unknown): LockStoreError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new LockStoreError({ store: this.name, operation, key, reason, cause });
  }
}

const QUEUES = new WeakMap<LockStore, LocalQueues>();

const SNAPSHOT_MODES: ReadonlySet<unknown> = new Set(["free", "exclusive", "shared"]);

function checkedGrant<T extends AcquireResult>(result: T, request: AcquireRequest): T {
  if (result?.outcome === "contended") return result;
  if (result?.outcome === "granted" && carriesToken(result, request)) return result;
  throw unknownAnswer(result);
}

function checkedRelease(outcome: ReleaseOutcome): ReleaseOutcome {
  if (outcome === "released" || outcome === "not-held") return outcome;
  throw unknownAnswer(outcome);
}

function carriesToken(grant: { readonly fencingToken?: unknown }, request: { readonly fencing?: unknown }): boolean {
  return request.fencing !== true || typeof grant.fencingToken === "bigint";
}

function unknownAnswer(answer: unknown): TypeError {
  const shown = JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
  return new TypeError(`the store answered ${shown}, which the store contract does not know`);
}
