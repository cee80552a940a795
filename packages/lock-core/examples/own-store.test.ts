import { before, describe, test } from "node:test";
import type { AcquireRequest, AcquireResult, ExtendOutcome, ExtendRequest, LockStore } from "@ota/lock-core";
import { type OwnedKey, type ReleaseOutcome, systemClock } from "@ota/lock-core";
import { storeContract } from "@ota/lock-core/testing";

/** A store of one's own: each method is one atomic step, as one statement or one script would be. */
class MapStore implements LockStore {
  readonly name = "map";
  readonly reach = "process";
  readonly #rows: Map<string, { owner: string; endsAt: number }>;

  constructor(rows: Map<string, { owner: string; endsAt: number }>) {
    this.#rows = rows;
  }

  async acquire({ key, owner, ttlMs }: AcquireRequest): Promise<AcquireResult> {
    if (this.#holder(key) !== undefined && this.#holder(key) !== owner) return { outcome: "contended" };
    this.#rows.set(key, { owner, endsAt: systemClock.now() + ttlMs });
    return { outcome: "granted" };
  }

  async extend({ key, owner, ttlMs }: ExtendRequest): Promise<ExtendOutcome> {
    if (this.#holder(key) !== owner) return "lost";
    this.#rows.set(key, { owner, endsAt: systemClock.now() + ttlMs });
    return "extended";
  }

  async release({ key, owner }: OwnedKey): Promise<ReleaseOutcome> {
    if (this.#holder(key) !== owner) return "not-held";
    this.#rows.delete(key);
    return "released";
  }

  async isHeld({ key, owner }: OwnedKey): Promise<boolean> {
    return this.#holder(key) === owner;
  }

  #holder(key: string): string | undefined {
    const row = this.#rows.get(key);
    return row !== undefined && row.endsAt > systemClock.now() ? row.owner : undefined;
  }
}

describe("MapStore", () => {
  let stores: [LockStore, LockStore];
  before(() => {
    const rows = new Map();
    stores = [new MapStore(rows), new MapStore(rows)]; // two connections to one backend
  });
  for (const { rule, title, run } of storeContract({ stores: () => stores, shortTtlMs: 60 })) {
    test(`rule ${rule}: ${title}`, run);
  }
});
