import type {
  AcquireRequest,
  AcquireResult,
  ExtendOutcome,
  ExtendRequest,
  OwnedKey,
  ReleaseOutcome,
} from "@ota/lock-core";
import type { Mistake } from "./mistake.ts";
import { PlainStore, type Row } from "./plain-store.ts";

/** Mistakes about faults, about foreign data, and about doing in two steps what must be one. */
export const backendMistakes: readonly Mistake[] = [
  {
    name: "a fault is reported as contention",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        return this.backend.down ? { outcome: "contended" } : super.acquire(request);
      }
    },
    caughtBy: ["a-fault-is-an-error", "a-fault-leaves-nothing-granted"],
  },
  {
    name: "a fault is reported as a lost lease",
    Store: class extends PlainStore {
      override async extend(request: ExtendRequest): Promise<ExtendOutcome> {
        return this.backend.down ? "lost" : super.extend(request);
      }
    },
    caughtBy: ["a-fault-is-an-error"],
  },
  {
    name: "a fault of a release is swallowed",
    Store: class extends PlainStore {
      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        return this.backend.down ? "not-held" : super.release(request);
      }
    },
    caughtBy: ["a-fault-is-an-error"],
  },
  {
    name: "a fault of isHeld is reported as not held",
    Store: class extends PlainStore {
      override async isHeld(request: OwnedKey): Promise<boolean> {
        return this.backend.down ? false : super.isHeld(request);
      }
    },
    caughtBy: ["a-fault-is-an-error"],
  },
  {
    name: "a fault is thrown as the driver's own error",
    Store: class extends PlainStore {
      protected override reachBackend(): void {
        if (this.backend.down) throw new Error("ECONNREFUSED");
      }
    },
    caughtBy: ["a-fault-is-an-error", "a-fault-leaves-nothing-granted"],
  },
  {
    name: "what failed is carried out later, with a TTL of the store's own",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        if (this.backend.down) {
          this.backend.onRepair.push(() => this.write(request.key, { owner: request.owner, ttlMs: 300_000 }));
        }
        return super.acquire(request);
      }
    },
    caughtBy: ["a-fault-leaves-nothing-granted"],
  },
  {
    name: "a foreign string is overwritten",
    Store: class extends PlainStore {
      protected override rowOf(key: string): Row | undefined {
        const row = super.rowOf(key);
        return typeof row === "string" ? undefined : row;
      }
    },
    caughtBy: ["foreign-string-counts-as-held"],
  },
  {
    name: "foreign data is overwritten",
    Store: class extends PlainStore {
      protected override rowOf(key: string): Row | undefined {
        const row = this.backend.rows.get(key);
        return typeof row === "object" && row.kind === "foreign" ? undefined : super.rowOf(key);
      }
    },
    caughtBy: ["foreign-data-is-an-error-of-its-own"],
  },
  {
    name: "foreign data is reported as contention",
    Store: class extends PlainStore {
      protected override rowOf(key: string): Row | undefined {
        const row = this.backend.rows.get(key);
        return typeof row === "object" && row.kind === "foreign" ? "in use" : super.rowOf(key);
      }
    },
    caughtBy: ["foreign-data-is-an-error-of-its-own"],
  },
  {
    name: "the TTL is set in a second step after the grant",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const result = await super.acquire({ ...request, ttlMs: 300_000 });
        if (result.outcome === "granted") await super.extend(request);
        return result;
      }
    },
    caughtBy: ["ttl-comes-with-the-grant"],
  },
];
