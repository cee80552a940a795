import {
  type AcquireRequest,
  type AcquireResult,
  type DemoteOutcome,
  type ExtendOutcome,
  type ExtendRequest,
  type FencingStore,
  type InspectableStore,
  type KeyRequest,
  LockFactory,
  type LockFactoryOptions,
  type LockSnapshot,
  type LockStore,
  type Logger,
  MemoryState,
  MemoryStore,
  type OwnedKey,
  type PromoteRequest,
  type PromoteResult,
  type ReleaseOutcome,
  type SharedLockStore,
  type StoreOperation,
  type StoreReach,
} from "@ota/lock-core";
import { ManualClock } from "@ota/lock-core/testing";

/** What happens to one request on its way: each step may wait, throw, or give another answer. */
export interface Detour {
  /** Runs before the store is asked. */
  readonly before?: () => Promise<void>;
  /** Runs after the store has done what was asked, before its answer is seen. */
  readonly after?: () => Promise<void>;
  /** Is answered in place of the store's answer. */
  readonly answer?: unknown;
}

/** A store that notes every request, and sends the next one of a kind on a detour when told to. */
export class ObservedStore implements LockStore {
  readonly name: string = "observed";
  readonly reach: StoreReach = "process";
  readonly requests: ({ readonly operation: StoreOperation } & OwnedKey & { readonly ttlMs?: number })[] = [];
  readonly #store: LockStore;
  readonly #detours: Map<StoreOperation, Detour[]> = new Map();

  constructor(store: LockStore) {
    this.#store = store;
  }

  get operations(): StoreOperation[] {
    return this.requests.map(({ operation }) => operation);
  }

  detour(operation: StoreOperation, detour: Detour): void {
    this.#detours.set(operation, [...(this.#detours.get(operation) ?? []), detour]);
  }

  acquire(request: AcquireRequest): Promise<AcquireResult> {
    return this.passing("acquire", request, () => this.#store.acquire(request));
  }

  extend(request: ExtendRequest): Promise<ExtendOutcome> {
    return this.passing("extend", request, () => this.#store.extend(request));
  }

  release(request: OwnedKey): Promise<ReleaseOutcome> {
    return this.passing("release", request, () => this.#store.release(request));
  }

  isHeld(request: OwnedKey): Promise<boolean> {
    return this.passing("isHeld", request, () => this.#store.isHeld(request));
  }

  /** For what a subclass can do beyond the bare contract. */
  protected async passing<T>(operation: StoreOperation, request: OwnedKey, ask: () => Promise<T>): Promise<T> {
    this.requests.push({ operation, ...request });
    const detour = this.#detours.get(operation)?.shift();
    await detour?.before?.();
    const answer = await ask();
    await detour?.after?.();
    return detour !== undefined && "answer" in detour ? (detour.answer as T) : answer;
  }
}

/** An observed store with every capability, whose leases can be handed over. */
export class ObservedFullStore extends ObservedStore implements SharedLockStore, FencingStore, InspectableStore {
  override readonly reach: StoreReach = "shared";
  readonly #store: MemoryStore;

  constructor(store: MemoryStore) {
    super(store);
    this.#store = store;
  }

  promote(request: PromoteRequest): Promise<PromoteResult> {
    return this.passing("promote", request, () => this.#store.promote(request));
  }

  demote(request: ExtendRequest): Promise<DemoteOutcome> {
    return this.passing("demote", request, () => this.#store.demote(request));
  }

  checkFencing(key: string): void {
    this.#store.checkFencing(key);
  }

  inspect(request: KeyRequest): Promise<LockSnapshot> {
    return this.passing("inspect", { owner: "", ...request }, () => this.#store.inspect(request));
  }

  forceRelease(request: KeyRequest): Promise<ReleaseOutcome> {
    return this.passing("forceRelease", { owner: "", ...request }, () => this.#store.forceRelease(request));
  }
}

export interface LogLine {
  readonly level: keyof Logger;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A world of its own for one test: a clock, a store on it, locks on the store, another client's store, and the log. */
export function setUp(options: LockFactoryOptions = {}) {
  return setUpOn(ObservedStore, options);
}

/** The same on a store with every capability. */
export function setUpFull(options: LockFactoryOptions = {}) {
  return setUpOn(ObservedFullStore, options);
}

function setUpOn<Store extends ObservedStore>(
  StoreClass: new (store: MemoryStore) => Store,
  options: LockFactoryOptions,
) {
  const clock = new ManualClock();
  const state = new MemoryState({ clock });
  const store = new StoreClass(new MemoryStore({ state }));
  const log: LogLine[] = [];
  const noteAs = (level: keyof Logger) => (fields: LogLine["fields"], message: string) => {
    log.push({ level, message, fields });
  };
  const logger: Logger = {
    debug: noteAs("debug"),
    info: noteAs("info"),
    warn: noteAs("warn"),
    error: noteAs("error"),
  };
  const locks = new LockFactory(store, { clock, logger, ttlMs: 1_000, ...options });
  const others = new MemoryStore({ state });
  const warnings = () => log.filter(({ level }) => level === "warn").map(({ message }) => message);
  return { clock, state, store, locks, others, log, warnings };
}

/** Somebody else's hold on a key, outside the locks under test. */
export function stranger(key: string): OwnedKey {
  return { key, owner: "stranger" };
}

/** A promise and what settles it. */
export function deferred(): { readonly promise: Promise<void>; resolve(): void; reject(error: unknown): void } {
  return Promise.withResolvers<void>();
}

export function failing(message = "no connection"): () => Promise<never> {
  return () => Promise.reject(new Error(message));
}
