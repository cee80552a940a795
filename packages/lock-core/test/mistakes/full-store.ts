import {
  type AcquireRequest,
  type AcquireResult,
  type DemoteOutcome,
  type ExtendOutcome,
  type ExtendRequest,
  type FencingStore,
  type InspectableStore,
  type KeyRequest,
  LockKeyConflictError,
  type LockMode,
  type LockSnapshot,
  LockStoreError,
  type OwnedKey,
  type PromoteRequest,
  type PromoteResult,
  type ReleaseOutcome,
  type SharedLockStore,
  type StoreOperation,
  type StoreReach,
} from "@ota/lock-core";
import type { BackendAccess, ManualClock } from "@ota/lock-core/testing";

/** What a full backend keeps under a key: a lock of one writer or of readers, a string, or anything else. */
export type FullRow = HeldLock | string | { readonly kind: "foreign" };

export interface HeldLock {
  readonly kind: "lock";
  mode: LockMode;
  /** When the lease of each owner ends. */
  readonly ends: Map<string, number>;
}

/** What the tokens of a backend start at, far below what they may be. */
const FIRST_TOKEN = 1_000_000_000n;

/** A backend in plain sight, as the plain one is, for a store that has every capability. */
export class FullBackend implements BackendAccess {
  readonly rows: Map<string, FullRow> = new Map();
  readonly tokens: Map<string, bigint> = new Map();
  readonly clock: ManualClock;
  down = false;

  constructor(clock: ManualClock) {
    this.clock = clock;
  }

  async plantString(key: string): Promise<void> {
    this.rows.set(key, "somebody else's lock");
  }

  async plantOther(key: string): Promise<void> {
    this.rows.set(key, { kind: "foreign" });
  }

  async contents(key: string): Promise<unknown> {
    return structuredClone([...this.rows].filter(([name]) => name.startsWith(key)));
  }

  async lifetimeMs(key: string): Promise<number | undefined> {
    const row = this.rows.get(key);
    return isLock(row) ? Math.max(...row.ends.values()) - this.clock.now() : undefined;
  }

  async breakBackend(): Promise<() => Promise<void>> {
    this.down = true;
    return async () => {
      this.down = false;
    };
  }

  async loseTokens(key: string): Promise<void> {
    this.tokens.delete(key);
  }
}

/** The contract with all its capabilities in their plainest correct form. Each mistake is this with one method changed. */
export class FullStore implements SharedLockStore, FencingStore, InspectableStore {
  readonly name: string = "full";
  readonly reach: StoreReach = "shared";
  readonly backend: FullBackend;

  constructor(backend: FullBackend) {
    this.backend = backend;
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    this.reachBackend("acquire", request.key);
    const { key, owner, mode = "exclusive" } = request;
    const row = this.rowOf(key);
    if (typeof row === "string" || (row !== undefined && !this.admits(row, { owner, mode }))) {
      return { outcome: "contended" };
    }
    return { outcome: "granted", ...this.hold(request, mode) };
  }

  async extend(request: ExtendRequest): Promise<ExtendOutcome> {
    this.reachBackend("extend", request.key);
    const lock = this.lockOf(request);
    lock?.ends.set(request.owner, this.now() + request.ttlMs);
    return lock === undefined ? "lost" : "extended";
  }

  async release(request: OwnedKey): Promise<ReleaseOutcome> {
    this.reachBackend("release", request.key);
    const lock = this.lockOf(request);
    lock?.ends.delete(request.owner);
    if (lock?.ends.size === 0) this.backend.rows.delete(request.key);
    return lock === undefined ? "not-held" : "released";
  }

  async isHeld(request: OwnedKey): Promise<boolean> {
    this.reachBackend("isHeld", request.key);
    return this.lockOf(request) !== undefined;
  }

  async promote(request: PromoteRequest): Promise<PromoteResult> {
    this.reachBackend("promote", request.key);
    const lock = this.lockOf(request);
    if (lock === undefined) return { outcome: "lost" };
    if (lock.ends.size > 1) return { outcome: "contended" };
    return { outcome: "promoted", ...this.hold(request, "exclusive") };
  }

  async demote(request: ExtendRequest): Promise<DemoteOutcome> {
    this.reachBackend("demote", request.key);
    if (this.lockOf(request) === undefined) return "lost";
    this.hold(request, "shared");
    return "demoted";
  }

  checkFencing(_key: string): void {}

  async inspect({ key }: KeyRequest): Promise<LockSnapshot> {
    this.reachBackend("inspect", key);
    const row = this.rowOf(key);
    if (!isLock(row)) return { mode: "free", holders: [] };
    const ends = [...row.ends.values()].sort((one, other) => one - other);
    return { mode: row.mode, holders: ends.map((endsAt) => ({ remainingMs: endsAt - this.now() })) };
  }

  async forceRelease({ key }: KeyRequest): Promise<ReleaseOutcome> {
    this.reachBackend("forceRelease", key);
    if (!isLock(this.rowOf(key))) return "not-held";
    this.backend.rows.delete(key);
    return "released";
  }

  protected now(): number {
    return this.backend.clock.now();
  }

  protected reachBackend(operation: StoreOperation, key: string): void {
    if (this.backend.down) throw new LockStoreError({ store: this.name, operation, key, reason: "it is down" });
  }

  /** The row under the key, without the holders whose lease lapsed. */
  protected rowOf(key: string): HeldLock | string | undefined {
    const row = this.backend.rows.get(key);
    if (typeof row === "object" && row.kind === "foreign") throw new LockKeyConflictError({ key, found: "a thing" });
    if (!isLock(row)) return row;
    for (const [owner, endsAt] of row.ends) if (this.isLapsed(endsAt, row)) row.ends.delete(owner);
    if (row.ends.size > 0) return row;
    this.backend.rows.delete(key);
    return undefined;
  }

  protected isLapsed(endsAt: number, _lock: HeldLock): boolean {
    return endsAt <= this.now();
  }

  /** The lock that this owner holds. */
  protected lockOf({ key, owner }: OwnedKey): HeldLock | undefined {
    const row = this.rowOf(key);
    return isLock(row) && row.ends.has(owner) ? row : undefined;
  }

  protected admits(lock: HeldLock, { owner, mode }: { readonly owner: string; readonly mode: LockMode }): boolean {
    const holds = lock.ends.has(owner);
    return mode === "shared" ? holds || lock.mode === "shared" : holds && lock.ends.size === 1;
  }

  /** Makes the owner a holder in the mode. */
  protected hold(request: PromoteRequest, mode: LockMode): { readonly fencingToken?: bigint } {
    const row = this.rowOf(request.key);
    const lock: HeldLock = isLock(row) ? row : { kind: "lock", mode: "shared", ends: new Map() };
    const minting = mode === "exclusive" && lock.mode === "shared";
    lock.ends.set(request.owner, this.now() + request.ttlMs);
    lock.mode = mode;
    this.backend.rows.set(request.key, lock);
    return request.fencing === true ? { fencingToken: this.token(request, minting) } : {};
  }

  protected token({ key }: OwnedKey, minting: boolean): bigint {
    const last = this.backend.tokens.get(key);
    const token = last === undefined || minting ? this.next(last ?? 0n) : last;
    this.backend.tokens.set(key, token);
    return token;
  }

  protected next(last: bigint): bigint {
    const seed = FIRST_TOKEN + BigInt(Math.floor(this.now() * 1_000));
    return last >= seed ? last + 1n : seed;
  }
}

export function isLock(row: FullRow | undefined): row is HeldLock {
  return typeof row === "object" && row.kind === "lock";
}
