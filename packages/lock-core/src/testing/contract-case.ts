import type { Clock } from "../clock.ts";
import type { LockStore } from "../store.ts";

/** One promise of the store contract, as a test that any runner can run. */
export interface ContractCase {
  /** A stable short name, such as `second-owner-is-refused`. */
  readonly id: string;
  /** The number of the rule in the README of `@ota/lock-core` that the case belongs to. */
  readonly rule: number;
  /** What is guaranteed, as a sentence. */
  readonly title: string;
  /** Resolves when the store keeps the promise, rejects with an `AssertionError` when it does not. */
  run(): Promise<void>;
}

/** What a store can do beyond the bare contract; each is an interface of `@ota/lock-core` that the store implements. */
export type StoreCapability = "shared" | "fencing" | "inspection" | "waiting";

/** What the suite has to know about a store and its backend. Only `stores` is required. */
export interface StoreContractOptions extends Partial<BackendAccess> {
  /**
   * Two stores with a connection of their own each to one and the same backend. Called as a case starts, so they may be
   * made in a hook of the test runner.
   */
  readonly stores: () => readonly [LockStore, LockStore];
  /**
   * What the stores can do beyond the bare contract: `SharedLockStore`, `FencingStore`, `InspectableStore`,
   * `WaitQueueStore`. Each adds its
   * cases; one that a store has and does not claim fails a case.
   * @default none
   */
  readonly claims?: readonly StoreCapability[];
  /**
   * Whether several that ask at once may all be refused, as by a store that needs the agreement of several backends: each
   * backend may have granted another one. Never are two granted.
   * @default false
   */
  readonly mayRefuseAll?: boolean;
  /**
   * The TTL of the cases that wait for a lease to lapse, in milliseconds. Longer is slower, and steadier on a busy
   * machine: such a lease must outlive a few requests.
   * @default 250
   */
  readonly shortTtlMs?: number;
  /**
   * Lets so many milliseconds pass for the backend and for `clock`.
   * @default a real pause
   */
  readonly elapse?: (ms: number) => Promise<void>;
  /**
   * The clock of the locks that some cases put on the store.
   * @default Node's monotonic clock
   */
  readonly clock?: Clock;
}

/** Ways past the store to its backend. The cases that need one which is missing are left out of the suite. */
export interface BackendAccess {
  /** Puts a string under the key that no lock store wrote, as a hand-written lock would. */
  plantString(key: string): Promise<void>;
  /** Puts something under the key that is neither a lock nor a string. */
  plantOther(key: string): Promise<void>;
  /**
   * All that the backend keeps because of the key, in a form that `assert.deepEqual` can compare; ends as points in time
   * rather than as time left.
   */
  contents(key: string): Promise<unknown>;
  /**
   * How long the backend by itself would keep the key, in milliseconds: `undefined` when nothing is there, `Infinity` when
   * it would stay for ever.
   */
  lifetimeMs(key: string): Promise<number | undefined>;
  /**
   * Makes the backend fail for both stores, for example by cutting their connections. Resolves with the way to end it.
   */
  breakBackend(): Promise<() => Promise<void>>;
  /** Loses what the backend counts the key's fencing tokens with. */
  loseTokens(key: string): Promise<void>;
}

/** What a case works with. */
export interface CaseContext {
  /** The stores under test: two connections, one backend. */
  readonly a: LockStore;
  readonly b: LockStore;
  readonly claims: readonly StoreCapability[];
  readonly mayRefuseAll: boolean;
  readonly clock: Clock;
  readonly shortTtlMs: number;
  /** Far longer than any case runs. */
  readonly longTtlMs: number;
  /** Access to the backend. The case has named in `needs` what it uses of it. */
  readonly backend: BackendAccess;
  elapse(ms: number): Promise<void>;
  /** Lets a lease of `ttlMs` lapse, with some margin. */
  lapse(ttlMs: number): Promise<void>;
}

/** A case before it is bound to a store. */
export interface CaseDefinition extends Omit<ContractCase, "run"> {
  readonly needs?: readonly (keyof BackendAccess)[];
  /** The capabilities that the case is about: it is left out unless all are claimed. */
  readonly claims?: readonly StoreCapability[];
  /** A capability whose lack the case is about: it is left out when that is claimed. */
  readonly lacks?: StoreCapability;
  check(context: CaseContext): Promise<void>;
}
