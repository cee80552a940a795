import {
  type AcquireRequest,
  type AcquireResult,
  type ExtendOutcome,
  type ExtendRequest,
  LockKeyConflictError,
  type LockStore,
  LockStoreError,
  type OwnedKey,
  type ReleaseOutcome,
  type StoreOperation,
  type StoreReach,
} from "@ota/lock-core";
import type { BackendAccess, ManualClock } from "@ota/lock-core/testing";

/** What a plain backend keeps under a key: a lock, a string, or anything else. */
export type Row = Lease | string | { readonly kind: "foreign" };

export interface Lease {
  readonly kind: "lease";
  readonly owner: string;
  readonly endsAt: number;
}

/** A backend in plain sight, which can be looked into, written to behind the store's back, and made to fail. */
export class PlainBackend implements Omit<BackendAccess, "loseTokens"> {
  readonly rows: Map<string, Row> = new Map();
  readonly clock: ManualClock;
  down = false;
  /** What is still done for the requests that failed, once the backend is back. */
  readonly onRepair: (() => void)[] = [];

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
    return isLease(row) ? row.endsAt - this.clock.now() : undefined;
  }

  async breakBackend(): Promise<() => Promise<void>> {
    this.down = true;
    return async () => {
      this.down = false;
      for (const work of this.onRepair.splice(0)) work();
    };
  }
}

/** The contract in its plainest correct form. Each mistake is this with one method changed. */
export class PlainStore implements LockStore {
  readonly name: string = "plain";
  readonly reach: StoreReach = "process";
  readonly backend: PlainBackend;

  constructor(backend: PlainBackend) {
    this.backend = backend;
  }

  async acquire({ key, owner, ttlMs }: AcquireRequest): Promise<AcquireResult> {
    this.reachBackend("acquire", key);
    const row = this.rowOf(key);
    if (typeof row === "string" || (isLease(row) && row.owner !== owner)) return { outcome: "contended" };
    this.write(key, { owner, ttlMs });
    return { outcome: "granted" };
  }

  async extend({ key, owner, ttlMs }: ExtendRequest): Promise<ExtendOutcome> {
    this.reachBackend("extend", key);
    if (!this.holds(key, owner)) return "lost";
    this.write(key, { owner, ttlMs });
    return "extended";
  }

  async release({ key, owner }: OwnedKey): Promise<ReleaseOutcome> {
    this.reachBackend("release", key);
    if (!this.holds(key, owner)) return "not-held";
    this.remove(key);
    return "released";
  }

  async isHeld({ key, owner }: OwnedKey): Promise<boolean> {
    this.reachBackend("isHeld", key);
    return this.holds(key, owner);
  }

  protected now(): number {
    return this.backend.clock.now();
  }

  protected reachBackend(operation: StoreOperation, key: string): void {
    if (this.backend.down) throw new LockStoreError({ store: this.name, operation, key, reason: "it is down" });
  }

  /** The row under the key, unless it is a lapsed lease. */
  protected rowOf(key: string): Row | undefined {
    const row = this.backend.rows.get(key);
    if (typeof row === "object" && row.kind === "foreign") throw new LockKeyConflictError({ key, found: "a thing" });
    return isLease(row) && row.endsAt <= this.now() ? undefined : row;
  }

  protected holds(key: string, owner: string): boolean {
    const row = this.rowOf(key);
    return isLease(row) && row.owner === owner;
  }

  protected write(key: string, { owner, ttlMs }: { readonly owner: string; readonly ttlMs: number }): void {
    this.backend.rows.set(key, { kind: "lease", owner, endsAt: this.now() + ttlMs });
  }

  protected remove(key: string): void {
    this.backend.rows.delete(key);
  }
}

export function isLease(row: Row | undefined): row is Lease {
  return typeof row === "object" && row.kind === "lease";
}
