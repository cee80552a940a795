import type { Spot } from "./memory-line.ts";
import { type MemoryLock, MemoryState } from "./memory-state.ts";
import type {
  AcquireRequest,
  AcquireResult,
  ExtendOutcome,
  ExtendRequest,
  LockMode,
  OwnedKey,
  ReleaseOutcome,
  StoreReach,
} from "./store.ts";
import type {
  DemoteOutcome,
  FencingStore,
  InspectableStore,
  KeyRequest,
  LockSnapshot,
  PromoteRequest,
  PromoteResult,
  SharedLockStore,
} from "./store-capabilities.ts";
import type { PlaceAcquireResult, PlaceRequest, WaiterRequest, WaitPlace, WaitQueueStore } from "./wait-queue.ts";

/**
 * A store in the memory of this process: the embedded default, and the reference for what a store does. It honours TTL
 * and ownership as a backend would, and excludes within this process only. It has every capability.
 *
 * Lapsed leases are cleared away as new ones are granted; no timer runs.
 */
export class MemoryStore implements SharedLockStore, FencingStore, InspectableStore, WaitQueueStore {
  readonly name: string = "memory";
  readonly reach: StoreReach = "process";
  readonly #state: MemoryState;

  constructor(options: MemoryStoreOptions = {}) {
    this.#state = options.state ?? new MemoryState();
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { key, owner, mode = "exclusive" } = request;
    const lock = this.#state.get(key);
    if (lock !== undefined && !admits(lock, { owner, mode })) return { outcome: "contended" };
    return { outcome: "granted", ...this.#hold(lock ?? this.#state.add(key), { ...request, mode }) };
  }

  async extend({ key, owner, ttlMs }: ExtendRequest): Promise<ExtendOutcome> {
    const lock = this.#state.get(key);
    if (lock?.ends.has(owner) !== true) return "lost";
    lock.ends.set(owner, this.#state.now() + ttlMs);
    return "extended";
  }

  async release(request: OwnedKey): Promise<ReleaseOutcome> {
    return this.#release(request);
  }

  #release({ key, owner }: OwnedKey, asking?: Spot): ReleaseOutcome {
    const lock = this.#state.get(key);
    if (lock?.ends.delete(owner) !== true) return "not-held";
    if (lock.ends.size === 0) this.#free(key, asking);
    return "released";
  }

  async isHeld({ key, owner }: OwnedKey): Promise<boolean> {
    return this.#state.get(key)?.ends.has(owner) === true;
  }

  async promote(request: PromoteRequest): Promise<PromoteResult> {
    const lock = this.#state.get(request.key);
    if (lock?.ends.has(request.owner) !== true) return { outcome: "lost" };
    if (lock.ends.size > 1) return { outcome: "contended" };
    return { outcome: "promoted", ...this.#hold(lock, { ...request, mode: "exclusive" }) };
  }

  async demote(request: ExtendRequest): Promise<DemoteOutcome> {
    const lock = this.#state.get(request.key);
    if (lock?.ends.has(request.owner) !== true) return "lost";
    this.#hold(lock, { ...request, mode: "shared" });
    this.#state.line(request.key).passTurn();
    return "demoted";
  }

  /** Any key can be fenced. */
  checkFencing(_key: string): void {}

  async inspect({ key }: KeyRequest): Promise<LockSnapshot> {
    const lock = this.#state.get(key);
    if (lock === undefined) return { mode: "free", holders: [] };
    const now = this.#state.now();
    const ends = [...lock.ends.values()].sort((one, other) => one - other);
    return { mode: lock.mode, holders: ends.map((endsAt) => ({ remainingMs: endsAt - now })) };
  }

  async forceRelease({ key }: KeyRequest): Promise<ReleaseOutcome> {
    return this.#state.get(key) !== undefined && this.#free(key) ? "released" : "not-held";
  }

  /** The place is told of its turn directly, as all places are in this process. */
  openPlace({ key, onTurn }: PlaceRequest): WaitPlace {
    const spot: Spot = { onTurn, since: 0, turnEndsAt: undefined };
    return {
      acquire: async (request) => this.#acquireInTurn(spot, request),
      release: async ({ owner, next }) => {
        if (next !== undefined) this.#state.line(key).join(spot, next.waitedMs);
        const outcome = this.#release({ key, owner }, spot);
        return { outcome, next: spot.turnEndsAt === undefined ? "waits" : "turn" };
      },
      leave: async () => {
        this.#state.line(key).leave(spot);
        if (this.#state.get(key) === undefined) this.#state.line(key).passTurn();
      },
    };
  }

  async #acquireInTurn(spot: Spot, request: WaiterRequest): Promise<PlaceAcquireResult> {
    const { key, owner, waitedMs, mode = "exclusive" } = request;
    const line = this.#state.line(key);
    const lock = this.#state.get(key);
    if (lock !== undefined && !admits(lock, { owner, mode })) {
      line.join(spot, waitedMs);
      return { outcome: "contended", retryAfterMs: Math.max(...lock.ends.values()) - this.#state.now() };
    }
    if (lock?.ends.has(owner) !== true) {
      const ahead = line.aheadOf(spot, waitedMs);
      if (ahead !== undefined) return { outcome: "contended", retryAfterMs: ahead.turnEndsAt - this.#state.now() };
    }
    line.leave(spot);
    const granted = await this.acquire(request);
    if (mode === "shared") line.passTurn();
    return granted;
  }

  #free(key: string, asking?: Spot): boolean {
    const was = this.#state.delete(key);
    this.#state.line(key).passTurn(asking);
    return was;
  }

  /** Makes the owner a holder in the mode, for whom nothing stands against it. Gives the token that was asked for. */
  #hold(lock: MemoryLock, grant: Hold): { readonly fencingToken?: bigint } {
    const isWriter = lock.mode === "exclusive";
    lock.ends.set(grant.owner, this.#state.now() + grant.ttlMs);
    lock.mode = grant.mode;
    if (grant.fencing !== true) return {};
    if (grant.mode === "shared") lock.fencingToken ??= this.#state.currentToken();
    else if (!isWriter || lock.fencingToken === undefined) lock.fencingToken = this.#state.nextToken();
    return { fencingToken: lock.fencingToken };
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

interface Hold extends PromoteRequest {
  readonly mode: LockMode;
}

/** Whether a lock with live holders leaves room for this owner in this mode. */
function admits({ mode, ends }: MemoryLock, asked: { readonly owner: string; readonly mode: LockMode }): boolean {
  const isHolder = ends.has(asked.owner);
  return asked.mode === "shared" ? isHolder || mode === "shared" : isHolder && ends.size === 1;
}
