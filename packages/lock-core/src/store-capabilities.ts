import type { ExtendRequest, LockMode, LockStore } from "./store.ts";

/**
 * A store whose keys can have many readers at once: it honours `mode: "shared"` in `acquire`.
 *
 * A writer is refused while any reader is live, and a reader while a writer is. Each holder has an end of its own, which
 * no other holder shortens or prolongs. `extend`, `release` and `isHeld` are about the owner's lease in either mode.
 */
export interface SharedLockStore extends LockStore {
  /**
   * Makes the owner's live lease exclusive, with `ttlMs` left from now, if no other holder is live. With others there it
   * says `contended` and leaves the lease as it is: its mode, its end, everything. `lost` when the owner holds nothing any
   * more; it is then not granted anew. An exclusive lease stays one and its TTL starts anew.
   */
  promote(request: PromoteRequest): Promise<PromoteResult>;

  /**
   * Makes the owner's live lease shared, with `ttlMs` left from now, in one step: nobody else can hold the key exclusively
   * in between. `lost` when the owner holds nothing any more. A shared lease stays one and its TTL starts anew.
   */
  demote(request: ExtendRequest): Promise<DemoteOutcome>;
}

export interface PromoteRequest extends ExtendRequest {
  /** Whether the promotion must mint a fencing token. Asked of a {@link FencingStore} only. */
  readonly fencing?: boolean | undefined;
}

export type PromoteResult =
  | {
      readonly outcome: "promoted";
      /** Present when the request asked for `fencing`. */
      readonly fencingToken?: bigint | undefined;
    }
  | { readonly outcome: "contended" }
  | { readonly outcome: "lost" };

export type DemoteOutcome = "demoted" | "lost";

/** Whether the store has shared locks. */
export function hasSharedLocks(store: LockStore): store is SharedLockStore {
  return hasMethods(store, ["promote", "demote"]);
}

/**
 * A store whose grants can carry fencing tokens: it honours `fencing` in `acquire`, and in `promote` if it has that.
 *
 * Each new exclusive grant of a key, a promotion included, gets a token larger than every earlier one of that key: across
 * expiry, release, restarts of the backend and loss of whatever the store counts with. A second acquire by the holder gets
 * the token that the lease has; a reader gets one that is at least the last writer's and below the next one's. Tokens are
 * positive and below 2^63, so that they fit into the large integers of databases. An owner asks for a token in all of its
 * requests for a key or in none.
 */
export interface FencingStore extends LockStore {
  /**
   * Returns when grants of this key can carry tokens. Sends nothing.
   *
   * @throws LockOptionsError when they cannot.
   */
  checkFencing(key: string): void;
}

/** Whether the store has fencing tokens. */
export function hasFencing(store: LockStore): store is FencingStore {
  return hasMethods(store, ["checkFencing"]);
}

/** A store that shows operators who holds a key, and lets them free it. */
export interface InspectableStore extends LockStore {
  /** How the key is held now. It changes nothing and tells no owner tokens. */
  inspect(request: KeyRequest): Promise<LockSnapshot>;

  /**
   * Frees the key, whoever holds it: their next extend, release and isHeld find the lease gone. Fencing goes on where it
   * was. `not-held` when nobody held it.
   */
  forceRelease(request: KeyRequest): Promise<"released" | "not-held">;
}

export interface KeyRequest {
  readonly key: string;
}

/** How a key was held at one moment. */
export interface LockSnapshot {
  readonly mode: LockMode | "free";
  /** One entry for each holder, those that end first coming first; none when the key is free. */
  readonly holders: readonly LockHolder[];
}

export interface LockHolder {
  /** Milliseconds until the lease ends by itself; `Infinity` when it never does. */
  readonly remainingMs: number;
}

/** Whether the store can be inspected. */
export function hasInspection(store: LockStore): store is InspectableStore {
  return hasMethods(store, ["inspect", "forceRelease"]);
}

/** A store whose leases its holders must not count on for the whole of their TTL. */
export interface DriftingStore extends LockStore {
  /**
   * For how many milliseconds, from when the request left, a holder may count on a lease of `ttlMs`: less than `ttlMs`, by
   * what the clocks that decide may run apart.
   */
  validityMs(ttlMs: number): number;
}

/** Whether the store shortens what its holders may count on. */
export function hasDrift(store: LockStore): store is DriftingStore {
  return hasMethods(store, ["validityMs"]);
}

/** Whether the store is more than a bare one, by the methods of a capability. */
export function hasMethods(store: LockStore, names: readonly string[]): boolean {
  const methods = store as unknown as Readonly<Record<string, unknown>>;
  return names.every((name) => typeof methods[name] === "function");
}
