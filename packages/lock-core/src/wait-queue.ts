import type { AcquireRequest, Grant, LockStore, OwnedKey, ReleaseOutcome } from "./store.ts";
import { hasMethods } from "./store-capabilities.ts";

/**
 * A store that keeps those who wait for a key in order, and tells the one whose turn it is as soon as the key is free.
 *
 * It stands above the bare contract and takes nothing from it: a waiting place is no holder, and puts nothing where the
 * lock itself is kept, so that a key which nobody holds is free for everybody who asks by the plain `acquire`. Being told
 * is a hint that may get lost; who waits must ask again by itself now and then.
 *
 * Every operation that frees a key, the plain `release` included, gives the turn to the place that has waited longest.
 * A place that lets its turn pass holds the others up for 250 ms at most, however it came to that.
 */
export interface WaitQueueStore extends LockStore {
  /**
   * A place from which to wait for the key. Sends nothing: the place is in line from its first refused `acquire` on. One
   * place serves the waiters of one process, one after the other; a store gives one for each key at a time.
   */
  openPlace(request: PlaceRequest): WaitPlace;
}

export interface PlaceRequest {
  readonly key: string;
  /** Called when it may be worth asking again: the turn has come, or the store can say so no longer. It must not throw. */
  readonly onTurn: () => void;
}

/** See {@link WaitQueueStore.openPlace}. */
export interface WaitPlace {
  /**
   * Acquires as the store does, but in turn: also `contended` while others have waited longer. The place is in line from
   * then on, and out of it once granted. A fault leaves it in doubt.
   */
  acquire(request: WaiterRequest): Promise<PlaceAcquireResult>;

  /** Releases as the store does, and puts the place in line for `next` in the same step, before it gives the turn away. */
  release(request: PlaceReleaseRequest): Promise<PlaceReleaseResult>;

  /** Takes the place out of line. If it was its turn, that goes to the next. */
  leave(): Promise<void>;
}

/** What a waiter asks for. */
export interface WaiterRequest extends AcquireRequest {
  /** How long it has waited so far: places stand in the order of this, so that no clocks need to agree. */
  readonly waitedMs: number;
}

export type PlaceAcquireResult =
  | Grant
  | {
      readonly outcome: "contended";
      /** When to ask again if nothing is heard until then: the holder's lease, or the turn of another, ends. */
      readonly retryAfterMs?: number | undefined;
    };

export interface PlaceReleaseRequest extends OwnedKey {
  /** The waiter that is first in this process. */
  readonly next?: WaiterRequest | undefined;
}

export interface PlaceReleaseResult {
  readonly outcome: ReleaseOutcome;
  /**
   * What became of `next`: `turn` when it should ask now, `waits` when it is in line; or its grant, from a store that may
   * pass a lock on within a process.
   */
  readonly next?: "turn" | "waits" | Grant | undefined;
  /**
   * Whether no other place was in line. At the next release the waiter then asks without hearing first whether it is its
   * turn, right behind the request that releases: one round trip less, and harmless when it was wrong.
   */
  readonly alone?: boolean | undefined;
}

/** Whether the store keeps waiters in order. */
export function hasWaitQueue(store: LockStore): store is WaitQueueStore {
  return hasMethods(store, ["openPlace"]);
}
