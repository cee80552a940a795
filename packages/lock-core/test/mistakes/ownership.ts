import {
  type AcquireRequest,
  type AcquireResult,
  type LockStore,
  LockStoreError,
  type OwnedKey,
  type ReleaseOutcome,
} from "@ota/lock-core";
import type { Mistake } from "./mistake.ts";
import { isLease, PlainBackend, PlainStore } from "./plain-store.ts";

/** Mistakes about who holds a key. */
export const ownershipMistakes: readonly Mistake[] = [
  {
    name: "release frees the key whoever asks",
    Store: class extends PlainStore {
      override async release({ key }: OwnedKey): Promise<ReleaseOutcome> {
        this.reachBackend("release", key);
        if (this.rowOf(key) === undefined) return "not-held";
        this.backend.rows.delete(key);
        return "released";
      }
    },
    caughtBy: [
      "owners-are-compared-exactly",
      "refusal-gives-the-refused-nothing",
      "refusal-leaves-no-trace",
      "release-by-a-stranger-is-harmless",
      "second-release-says-not-held",
      "foreign-string-counts-as-held",
      "former-owner-cannot-touch-the-new-holder",
      "reserved-markers-are-no-owners",
    ],
  },
  {
    name: "release always says released",
    Store: class extends PlainStore {
      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        await super.release(request);
        return "released";
      }
    },
    caughtBy: [
      "fresh-key-is-free",
      "owners-are-compared-exactly",
      "refusal-gives-the-refused-nothing",
      "release-by-a-stranger-is-harmless",
      "second-release-says-not-held",
      "release-of-another-key-is-harmless",
      "foreign-string-counts-as-held",
      "former-owner-cannot-touch-the-new-holder",
      "lapsed-lease-is-not-released",
      "reserved-markers-are-no-owners",
    ],
  },
  {
    name: "release does nothing",
    Store: class extends PlainStore {
      override async release({ key, owner }: OwnedKey): Promise<ReleaseOutcome> {
        this.reachBackend("release", key);
        return this.holds(key, owner) ? "released" : "not-held";
      }
    },
    caughtBy: [
      "held-from-acquire-to-release",
      "refusal-gives-the-refused-nothing",
      "next-owner-enters-after-release",
      "grants-are-not-counted",
      "second-release-says-not-held",
      "release-leaves-nothing-behind",
      "stores-on-one-backend-see-each-other",
      "empty-key-is-a-key",
      "extend-after-release-says-lost",
      "late-grant-is-given-back",
      "late-extend-is-lost-and-given-back",
      "aborted-acquire-leaves-nothing",
      "waiting-lock-enters-after-release",
    ],
  },
  {
    name: "release frees all keys of the owner",
    Store: class extends PlainStore {
      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        const outcome = await super.release(request);
        for (const [key, row] of this.backend.rows) {
          if (isLease(row) && row.owner === request.owner) this.backend.rows.delete(key);
        }
        return outcome;
      }
    },
    caughtBy: ["one-owner-may-hold-several-keys", "release-of-another-key-is-harmless"],
  },
  {
    name: "release leaves a tombstone",
    Store: class extends PlainStore {
      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        const outcome = await super.release(request);
        if (outcome === "released") this.write(request.key, { owner: "", ttlMs: 0 });
        return outcome;
      }
    },
    caughtBy: ["release-leaves-nothing-behind"],
  },
  {
    name: "isHeld says whether the key is locked",
    Store: class extends PlainStore {
      override async isHeld({ key }: OwnedKey): Promise<boolean> {
        this.reachBackend("isHeld", key);
        return this.rowOf(key) !== undefined;
      }
    },
    caughtBy: [
      "is-held-asks-for-the-owner",
      "owners-are-compared-exactly",
      "refusal-gives-the-refused-nothing",
      "a-race-has-one-winner",
      "next-owner-enters-after-release",
      "foreign-string-counts-as-held",
      "former-owner-cannot-touch-the-new-holder",
      "reserved-markers-are-no-owners",
    ],
  },
  {
    name: "isHeld always says yes",
    Store: class extends PlainStore {
      override async isHeld({ key }: OwnedKey): Promise<boolean> {
        this.reachBackend("isHeld", key);
        return true;
      }
    },
    caughtBy: [
      "fresh-key-is-free",
      "held-from-acquire-to-release",
      "is-held-asks-for-the-owner",
      "owners-are-compared-exactly",
      "refusal-changes-nothing-for-the-holder",
      "refusal-gives-the-refused-nothing",
      "a-race-has-one-winner",
      "next-owner-enters-after-release",
      "grants-are-not-counted",
      "grant-again-starts-the-ttl-anew",
      "stores-on-one-backend-see-each-other",
      "empty-key-is-a-key",
      "foreign-string-counts-as-held",
      "foreign-data-is-an-error-of-its-own",
      "a-fault-leaves-nothing-granted",
      "lapsed-lease-is-free",
      "lapsed-lease-is-not-revived",
      "former-owner-cannot-touch-the-new-holder",
      "extend-may-shorten",
      "extend-never-adds",
      "extend-by-a-stranger-says-lost",
      "shortest-ttl",
      "wall-clock-of-the-client-changes-nothing",
      "reserved-markers-are-no-owners",
    ],
  },
  {
    name: "owners are compared without regard to case",
    Store: class extends PlainStore {
      protected override holds(key: string, owner: string): boolean {
        const row = this.rowOf(key);
        return isLease(row) && row.owner.toLowerCase() === owner.toLowerCase();
      }
    },
    caughtBy: ["owners-are-compared-exactly"],
  },
  {
    name: "only the first characters of an owner are compared",
    Store: class extends PlainStore {
      protected override holds(key: string, owner: string): boolean {
        const row = this.rowOf(key);
        return isLease(row) && row.owner.slice(0, 40) === owner.slice(0, 40);
      }
    },
    caughtBy: ["owners-are-compared-exactly"],
  },
  {
    name: "a held key is taken over",
    Store: class extends PlainStore {
      override async acquire({ key, owner, ttlMs }: AcquireRequest): Promise<AcquireResult> {
        this.reachBackend("acquire", key);
        if (typeof this.rowOf(key) === "string") return { outcome: "contended" };
        this.write(key, { owner, ttlMs });
        return { outcome: "granted" };
      }
    },
    caughtBy: [
      "owners-are-compared-exactly",
      "second-owner-is-refused",
      "refusal-changes-nothing-for-the-holder",
      "refusal-gives-the-refused-nothing",
      "refusal-leaves-no-trace",
      "a-race-has-one-winner",
      "next-owner-enters-after-release",
      "holder-is-granted-again",
      "release-by-a-stranger-is-harmless",
      "any-string-is-a-key",
      "former-owner-cannot-touch-the-new-holder",
      "extend-prolongs",
      "lease-lives-for-its-whole-ttl",
      "long-ttls",
      "wall-clock-of-the-client-changes-nothing",
      "waiting-lock-enters-after-release",
      "reserved-markers-are-no-owners",
      "shared-mode-without-shared-locks-is-exclusive",
    ],
  },
  {
    name: "acquire checks, then acts",
    Store: class extends PlainStore {
      override async acquire({ key, owner, ttlMs }: AcquireRequest): Promise<AcquireResult> {
        this.reachBackend("acquire", key);
        const row = this.rowOf(key);
        await undefined;
        if (typeof row === "string" || (isLease(row) && row.owner !== owner)) return { outcome: "contended" };
        this.write(key, { owner, ttlMs });
        return { outcome: "granted" };
      }
    },
    caughtBy: ["a-race-has-one-winner"],
  },
  {
    name: "contention is thrown",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const result = await super.acquire(request);
        if (result.outcome === "granted") return result;
        throw new LockStoreError({ store: this.name, operation: "acquire", key: request.key, reason: "held" });
      }
    },
    caughtBy: [
      "owners-are-compared-exactly",
      "second-owner-is-refused",
      "refusal-changes-nothing-for-the-holder",
      "refusal-gives-the-refused-nothing",
      "refusal-leaves-no-trace",
      "a-race-has-one-winner",
      "next-owner-enters-after-release",
      "holder-is-granted-again",
      "release-by-a-stranger-is-harmless",
      "any-string-is-a-key",
      "foreign-string-counts-as-held",
      "former-owner-cannot-touch-the-new-holder",
      "extend-prolongs",
      "lease-lives-for-its-whole-ttl",
      "long-ttls",
      "wall-clock-of-the-client-changes-nothing",
      "waiting-lock-enters-after-release",
      "reserved-markers-are-no-owners",
      "shared-mode-without-shared-locks-is-exclusive",
    ],
  },
  {
    name: "a refusal notes the refused owner as the next holder",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const result = await super.acquire(request);
        const line = `${request.key} waits`;
        if (result.outcome === "contended") this.backend.rows.set(line, request.owner);
        return result;
      }

      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        const outcome = await super.release(request);
        const next = this.backend.rows.get(`${request.key} waits`);
        if (outcome === "released" && typeof next === "string") this.write(request.key, { owner: next, ttlMs: 1_000 });
        return outcome;
      }
    },
    caughtBy: ["refusal-gives-the-refused-nothing", "refusal-leaves-no-trace", "foreign-string-counts-as-held"],
  },
  {
    name: "a refusal re-arms the holder's lease",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const row = this.rowOf(request.key);
        const result = await super.acquire(request);
        if (result.outcome === "contended" && isLease(row)) this.write(request.key, { ...request, owner: row.owner });
        return result;
      }
    },
    caughtBy: ["refusal-changes-nothing-for-the-holder", "refusal-leaves-no-trace"],
  },
  {
    name: "the holder itself is refused",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        this.reachBackend("acquire", request.key);
        return this.rowOf(request.key) === undefined ? super.acquire(request) : { outcome: "contended" };
      }
    },
    caughtBy: ["holder-is-granted-again", "grants-are-not-counted", "grant-again-starts-the-ttl-anew"],
  },
  {
    name: "grants are counted",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const again = this.holds(request.key, request.owner);
        const result = await super.acquire(request);
        if (again) this.backend.rows.set(`count ${request.owner}`, "more than once");
        return result;
      }

      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        if (this.backend.rows.delete(`count ${request.owner}`)) return "released";
        return super.release(request);
      }
    },
    caughtBy: ["grants-are-not-counted"],
  },
  {
    name: "two stores each keep a backend of their own",
    Store: class extends PlainStore {
      constructor(backend: PlainBackend) {
        super(new PlainBackend(backend.clock));
      }
    } satisfies new (
      backend: PlainBackend,
    ) => LockStore,
    caughtBy: [
      "is-held-asks-for-the-owner",
      "second-owner-is-refused",
      "refusal-changes-nothing-for-the-holder",
      "refusal-gives-the-refused-nothing",
      "refusal-leaves-no-trace",
      "a-race-has-one-winner",
      "next-owner-enters-after-release",
      "release-by-a-stranger-is-harmless",
      "stores-on-one-backend-see-each-other",
      "any-string-is-a-key",
      "empty-key-is-a-key",
      "foreign-string-counts-as-held",
      "foreign-data-is-an-error-of-its-own",
      "a-fault-is-an-error",
      "a-fault-leaves-nothing-granted",
      "former-owner-cannot-touch-the-new-holder",
      "extend-prolongs",
      "lease-lives-for-its-whole-ttl",
      "long-ttls",
      "wall-clock-of-the-client-changes-nothing",
      "waiting-lock-enters-after-release",
      "shared-mode-without-shared-locks-is-exclusive",
    ],
  },
];
