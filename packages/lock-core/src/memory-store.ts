import { type Clock, systemClock } from "./clock.ts";
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
 * A store in the memory of this process: the embedded default, and the reference for what a store does. It honours TTL
 * and ownership as a backend would, and excludes within this process only.
 *
 * Lapsed leases are cleared away as new ones are granted; no timer runs.
 */
export class MemoryStore implements LockStore {
  readonly name: string = "memory";
  readonly reach: StoreReach = "process";
  readonly #state: MemoryState;

  constructor(options: MemoryStoreOptions = {}) {
    this.#state = options.state ?? new MemoryState();
  }

  async acquire({ key, owner, ttlMs }: AcquireRequest): Promise<AcquireResult> {
    const held = this.#state.get(key);
    if (held !== undefined && held.owner !== owner) return { outcome: "contended" };
    this.#state.set(key, { owner, ttlMs });
    return { outcome: "granted" };
  }

  async extend({ key, owner, ttlMs }: ExtendRequest): Promise<ExtendOutcome> {
    if (this.#state.get(key)?.owner !== owner) return "lost";
    this.#state.set(key, { owner, ttlMs });
    return "extended";
  }

  async release({ key, owner }: OwnedKey): Promise<ReleaseOutcome> {
    if (this.#state.get(key)?.owner !== owner) return "not-held";
    this.#state.delete(key);
    return "released";
  }

  async isHeld({ key, owner }: OwnedKey): Promise<boolean> {
    return this.#state.get(key)?.owner === owner;
  }
}

/** Options of a {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /**
   * What the store works on. Stores that share one see each other's leases.
   * @default a state of its own
   */
  readonly state?: MemoryState | undefined;
}

/** The backend behind one or more {@link MemoryStore}s: their leases, and the one clock that decides when they lapse. */
export class MemoryState {
  readonly #leases = new Map<string, StoredLease>();
  readonly #clock: Pick<Clock, "now">;
  #sweep: Iterator<[string, StoredLease]> = this.#leases.entries();

  /** By default the state runs on Node's monotonic clock. */
  constructor(options: { readonly clock?: Pick<Clock, "now"> | undefined } = {}) {
    this.#clock = options.clock ?? systemClock;
  }

  /** How many leases are kept, lapsed ones that were not cleared away yet included. */
  get size(): number {
    return this.#leases.size;
  }

  /** The live lease under the key. */
  get(key: string): { readonly owner: string } | undefined {
    const lease = this.#leases.get(key);
    return lease !== undefined && lease.endsAt > this.#clock.now() ? lease : undefined;
  }

  /** Puts a lease under the key, in place of any other. */
  set(key: string, { owner, ttlMs }: { readonly owner: string; readonly ttlMs: number }): void {
    this.#clearSomeLapsed();
    this.#leases.set(key, { owner, endsAt: this.#clock.now() + ttlMs });
  }

  delete(key: string): void {
    this.#leases.delete(key);
  }

  /**
   * Looks at the next two leases of a walk that goes round for ever. As each call adds one lease at most, a walk ends
   * before the map has grown by half, so lapsed leases never outnumber the others by more than a small factor, and no
   * call takes longer than another.
   */
  #clearSomeLapsed(): void {
    for (let looked = 0; looked < 2; looked++) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#leases.entries();
        return;
      }
      const [key, lease] = next.value;
      if (lease.endsAt <= this.#clock.now()) this.#leases.delete(key);
    }
  }
}

interface StoredLease {
  readonly owner: string;
  readonly endsAt: number;
}
