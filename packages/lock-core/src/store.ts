/**
 * The store contract: what a backend must do so that locks can be built on it.
 *
 * A store performs **atomic operations**, one round trip each, and nothing else. It does not wait, retry, renew, abort,
 * count or log; all of that lives in one place above it, in `Lock` and `Lease`. Neither does it keep a record of who
 * holds what in this process: the owner token in each request is the whole identity of a holder.
 *
 * Two kinds of result, never mixed: what is expected (contention, a lapsed lease) is a **value**; what is a fault (the
 * backend is down, refuses or answers nonsense) is a thrown `LockStoreError`, `LockKeyConflictError` or
 * `LockOptionsError`. Contention is never an error, and a fault is never reported as contention.
 *
 * Every operation is idempotent per owner token, so that a request resent after a lost reply is safe: the owner's second
 * acquire re-arms its lease, its second release says `not-held`.
 *
 * What a store *may* do beyond this (shared locks, fencing tokens, inspection) is a second interface that it implements
 * as well, never an optional method here: see `store-capabilities.ts`. Locks work on a store that has none of them.
 */
export interface LockStore {
  /** A short stable name for logs and error messages, such as `memory` or `redis`. */
  readonly name: string;

  /**
   * How far a lease reaches: `process` when only this process can see it (then it cannot be handed over), `shared` when
   * every process on the same backend sees it.
   */
  readonly reach: StoreReach;

  /**
   * Grants the key to the owner for `ttlMs`, or says `contended` and leaves no trace. An owner that holds the key
   * already is granted again, in the mode it asks for now, unless another holder stands against that; its TTL starts
   * anew. The lease and its end are set in one atomic step, and the backend's own clock decides when it lapses.
   *
   * @throws LockKeyConflictError when foreign data of another type lies under the key.
   * @throws LockStoreError on any fault; the store then sees to it that nothing stays granted behind the caller's back.
   */
  acquire(request: AcquireRequest): Promise<AcquireResult>;

  /**
   * Sets the end of the owner's live lease to `ttlMs` from now (it may shorten, and never adds). `lost` when the owner
   * holds nothing any more: a lapsed lease is not revived.
   */
  extend(request: ExtendRequest): Promise<ExtendOutcome>;

  /** Ends the owner's lease. `not-held` when the owner held nothing; another owner's lease is never touched. */
  release(request: OwnedKey): Promise<ReleaseOutcome>;

  /** Whether **this owner** holds the key now. It does not say whether somebody else does. */
  isHeld(request: OwnedKey): Promise<boolean>;
}

/** See {@link LockStore.reach}. */
export type StoreReach = "process" | "shared";

/** A key together with the owner that acts on it. */
export interface OwnedKey {
  /** The resource being excluded on: any string, byte for byte. */
  readonly key: string;
  /** The owner token: opaque, unguessable, unique per acquisition. */
  readonly owner: string;
}

/** `exclusive` admits no other holder; `shared` admits other shared ones. Also called writer and reader. */
export type LockMode = "exclusive" | "shared";

export interface AcquireRequest extends OwnedKey {
  /** How long the lease lives unless extended: integer milliseconds, 1 … {@link MAX_TTL_MS}. */
  readonly ttlMs: number;
  /**
   * A store that is no `SharedLockStore` ignores it and grants an exclusive lease.
   * @default "exclusive"
   */
  readonly mode?: LockMode | undefined;
  /**
   * Whether the grant must carry a fencing token. Asked of a `FencingStore` only.
   * @default false
   */
  readonly fencing?: boolean | undefined;
}

export interface ExtendRequest extends OwnedKey {
  /** The new remaining lifetime: integer milliseconds, 1 … {@link MAX_TTL_MS}. */
  readonly ttlMs: number;
}

/** An object rather than a string, so that a grant can carry more without breaking any store. */
export type AcquireResult = Grant | { readonly outcome: "contended" };

export interface Grant {
  readonly outcome: "granted";
  /** Present when the request asked for `fencing`. */
  readonly fencingToken?: bigint | undefined;
}

export type ExtendOutcome = "extended" | "lost";

export type ReleaseOutcome = "released" | "not-held";

/** Ten years. Keeps `now + ttl` far below 2^53 and in plain digits, which the Redis layout depends on. */
export const MAX_TTL_MS = 315_360_000_000;
