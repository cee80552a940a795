import type {
  AcquireRequest,
  AcquireResult,
  ExtendOutcome,
  ExtendRequest,
  OwnedKey,
  ReleaseOutcome,
} from "@ota/lock-core";
import type { Mistake } from "./mistake.ts";
import { isLease, PlainStore } from "./plain-store.ts";

const STARTED_AT = Date.now();
const HOUR_MS = 3_600_000;

/** What notices that a short lease does not lapse in time. */
const CAUGHT_BY_EXPIRY = [
  "extend-by-a-stranger-says-lost",
  "extend-may-shorten",
  "extend-never-adds",
  "former-owner-cannot-touch-the-new-holder",
  "grant-again-starts-the-ttl-anew",
  "lapsed-lease-is-free",
  "lapsed-lease-is-not-released",
  "lapsed-lease-is-not-revived",
  "refusal-changes-nothing-for-the-holder",
  "shortest-ttl",
  "wall-clock-of-the-client-changes-nothing",
];

/** Mistakes about when a lease ends. */
export const expiryMistakes: readonly Mistake[] = [
  {
    name: "leases never lapse",
    Store: class extends PlainStore {
      protected override now(): number {
        return 0;
      }
    },
    caughtBy: CAUGHT_BY_EXPIRY,
  },
  {
    name: "a lapsed lease is free only once somebody has looked it up",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        this.reachBackend("acquire", request.key);
        const row = this.backend.rows.get(request.key);
        return isLease(row) && row.owner !== request.owner ? { outcome: "contended" } : super.acquire(request);
      }

      override async isHeld(request: OwnedKey): Promise<boolean> {
        const held = await super.isHeld(request);
        if (this.rowOf(request.key) === undefined) this.remove(request.key);
        return held;
      }
    },
    caughtBy: ["former-owner-cannot-touch-the-new-holder"],
  },
  {
    name: "a former owner's extend revives its lapsed lease",
    Store: class extends PlainStore {
      override async extend(request: ExtendRequest): Promise<ExtendOutcome> {
        this.reachBackend("extend", request.key);
        const row = this.backend.rows.get(request.key);
        if (!isLease(row) || row.owner !== request.owner) return super.extend(request);
        this.write(request.key, request);
        return "extended";
      }
    },
    caughtBy: ["lapsed-lease-is-not-revived"],
  },
  {
    name: "extend takes a free key",
    Store: class extends PlainStore {
      override async extend(request: ExtendRequest): Promise<ExtendOutcome> {
        this.reachBackend("extend", request.key);
        if (this.rowOf(request.key) === undefined) this.write(request.key, request);
        return super.extend(request);
      }
    },
    caughtBy: ["fresh-key-is-free", "extend-after-release-says-lost", "lapsed-lease-is-not-revived"],
  },
  {
    name: "extend does not check the owner",
    Store: class extends PlainStore {
      override async extend({ key, ttlMs }: ExtendRequest): Promise<ExtendOutcome> {
        this.reachBackend("extend", key);
        const row = this.rowOf(key);
        if (!isLease(row)) return "lost";
        this.write(key, { owner: row.owner, ttlMs });
        return "extended";
      }
    },
    caughtBy: [
      "refusal-gives-the-refused-nothing",
      "refusal-leaves-no-trace",
      "former-owner-cannot-touch-the-new-holder",
      "extend-by-a-stranger-says-lost",
      "reserved-markers-are-no-owners",
    ],
  },
  {
    name: "extend hands the lease to whoever asks",
    Store: class extends PlainStore {
      override async extend(request: ExtendRequest): Promise<ExtendOutcome> {
        this.reachBackend("extend", request.key);
        if (!isLease(this.rowOf(request.key))) return "lost";
        this.write(request.key, request);
        return "extended";
      }
    },
    caughtBy: [
      "refusal-gives-the-refused-nothing",
      "refusal-leaves-no-trace",
      "former-owner-cannot-touch-the-new-holder",
      "extend-by-a-stranger-says-lost",
      "reserved-markers-are-no-owners",
    ],
  },
  {
    name: "extend adds to what is left",
    Store: class extends PlainStore {
      override async extend(request: ExtendRequest): Promise<ExtendOutcome> {
        const row = this.rowOf(request.key);
        const leftMs = isLease(row) ? row.endsAt - this.now() : 0;
        return super.extend({ ...request, ttlMs: request.ttlMs + leftMs });
      }
    },
    caughtBy: ["extend-may-shorten", "extend-never-adds"],
  },
  {
    name: "extend never shortens",
    Store: class extends PlainStore {
      override async extend(request: ExtendRequest): Promise<ExtendOutcome> {
        const row = this.rowOf(request.key);
        const leftMs = isLease(row) ? row.endsAt - this.now() : 0;
        return super.extend({ ...request, ttlMs: Math.max(request.ttlMs, leftMs) });
      }
    },
    caughtBy: ["extend-may-shorten"],
  },
  {
    name: "extend says extended and changes nothing",
    Store: class extends PlainStore {
      override async extend({ key, owner }: ExtendRequest): Promise<ExtendOutcome> {
        this.reachBackend("extend", key);
        return this.holds(key, owner) ? "extended" : "lost";
      }
    },
    caughtBy: ["extend-prolongs", "extend-may-shorten"],
  },
  {
    name: "a release of a lapsed lease says released",
    Store: class extends PlainStore {
      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        const row = this.backend.rows.get(request.key);
        const outcome = await super.release(request);
        return isLease(row) && row.owner === request.owner ? "released" : outcome;
      }
    },
    caughtBy: ["lapsed-lease-is-not-released"],
  },
  {
    name: "a grant to the holder keeps the old end",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        this.reachBackend("acquire", request.key);
        return this.holds(request.key, request.owner) ? { outcome: "granted" } : super.acquire(request);
      }
    },
    caughtBy: ["grant-again-starts-the-ttl-anew"],
  },
  {
    name: "the lease ends before its TTL",
    Store: storeWithTtl((ttlMs) => ttlMs * 0.75),
    caughtBy: ["lease-lives-for-its-whole-ttl"],
  },
  {
    name: "TTLs are rounded up to seconds",
    Store: storeWithTtl((ttlMs) => Math.ceil(ttlMs / 1_000) * 1_000),
    caughtBy: CAUGHT_BY_EXPIRY,
  },
  {
    name: "TTLs are cut to seconds",
    Store: storeWithTtl((ttlMs) => Math.floor(ttlMs / 1_000) * 1_000),
    caughtBy: [
      "lease-lives-for-its-whole-ttl",
      "extend-never-adds",
      "extend-prolongs",
      "late-extend-is-lost-and-given-back",
      "late-grant-is-given-back",
      "refusal-changes-nothing-for-the-holder",
    ],
  },
  {
    name: "TTLs are kept in 32 bits",
    Store: storeWithTtl((ttlMs) => ttlMs | 0),
    caughtBy: ["long-ttls"],
  },
  {
    name: "all leases live for as long as the store likes",
    Store: storeWithTtl(() => 30_000),
    caughtBy: CAUGHT_BY_EXPIRY,
  },
  {
    name: "the wall clock of the client decides",
    Store: class extends PlainStore {
      protected override now(): number {
        return super.now() + Math.round((Date.now() - STARTED_AT) / HOUR_MS) * HOUR_MS;
      }
    },
    caughtBy: ["wall-clock-of-the-client-changes-nothing"],
  },
];

/** A store that changes TTLs before it uses them. */
function storeWithTtl(change: (ttlMs: number) => number): Mistake["Store"] {
  return class extends PlainStore {
    protected override write(key: string, { owner, ttlMs }: { readonly owner: string; readonly ttlMs: number }): void {
      super.write(key, { owner, ttlMs: change(ttlMs) });
    }
  };
}
