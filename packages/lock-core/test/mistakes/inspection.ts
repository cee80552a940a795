import type { KeyRequest, LockSnapshot, ReleaseOutcome } from "@ota/lock-core";
import { FullStore, isLock } from "./full-store.ts";
import type { FullMistake } from "./mistake.ts";

/** Mistakes about what operators see and do. */
export const inspectionMistakes: readonly FullMistake[] = [
  {
    name: "an inspection counts lapsed leases",
    Store: class extends FullStore {
      override async inspect({ key }: KeyRequest): Promise<LockSnapshot> {
        const row = this.backend.rows.get(key);
        if (!isLock(row)) return { mode: "free", holders: [] };
        return {
          mode: row.mode,
          holders: [...row.ends.values()].map((endsAt) => ({ remainingMs: endsAt - this.now() })),
        };
      }
    },
    caughtBy: ["inspection-shows-no-lapsed-writer", "inspection-shows-live-readers"],
  },
  {
    name: "an inspection tells the owner tokens",
    Store: class extends FullStore {
      override async inspect(request: KeyRequest): Promise<LockSnapshot> {
        const row = this.rowOf(request.key);
        const owners = isLock(row) ? [...row.ends.keys()] : [];
        const { mode, holders } = await super.inspect(request);
        return { mode, holders: holders.map((holder, nth) => ({ ...holder, owner: owners[nth] })) };
      }
    },
    caughtBy: ["inspection-shows-the-writer"],
  },
  {
    name: "an inspection gives seconds",
    Store: class extends FullStore {
      override async inspect(request: KeyRequest): Promise<LockSnapshot> {
        const { mode, holders } = await super.inspect(request);
        return { mode, holders: holders.map(({ remainingMs }) => ({ remainingMs: remainingMs / 1_000 })) };
      }
    },
    caughtBy: ["inspection-shows-the-writer", "inspection-shows-live-readers"],
  },
  {
    name: "an inspection lists holders as they came",
    Store: class extends FullStore {
      override async inspect({ key }: KeyRequest): Promise<LockSnapshot> {
        const row = this.rowOf(key);
        if (!isLock(row)) return { mode: "free", holders: [] };
        return {
          mode: row.mode,
          holders: [...row.ends.values()].map((endsAt) => ({ remainingMs: endsAt - this.now() })),
        };
      }
    },
    caughtBy: ["inspection-shows-live-readers"],
  },
  {
    name: "an inspection takes readers for a writer",
    Store: class extends FullStore {
      override async inspect(request: KeyRequest): Promise<LockSnapshot> {
        const { mode, holders } = await super.inspect(request);
        return { mode: mode === "shared" ? "exclusive" : mode, holders };
      }
    },
    caughtBy: ["inspection-shows-live-readers"],
  },
  {
    name: "an inspection prolongs the leases it sees",
    Store: class extends FullStore {
      override async inspect(request: KeyRequest): Promise<LockSnapshot> {
        const snapshot = await super.inspect(request);
        const row = this.rowOf(request.key);
        if (isLock(row)) for (const [owner, endsAt] of row.ends) row.ends.set(owner, endsAt + 1);
        return snapshot;
      }
    },
    caughtBy: ["inspection-changes-nothing"],
  },
  {
    name: "a forced release always says released",
    Store: class extends FullStore {
      override async forceRelease(request: KeyRequest): Promise<ReleaseOutcome> {
        await super.forceRelease(request);
        return "released";
      }
    },
    caughtBy: ["inspection-shows-no-lapsed-writer", "forced-release-frees-the-key"],
  },
  {
    name: "a forced release does nothing",
    Store: class extends FullStore {
      override async forceRelease({ key }: KeyRequest): Promise<ReleaseOutcome> {
        return isLock(this.rowOf(key)) ? "released" : "not-held";
      }
    },
    caughtBy: [
      "forced-release-frees-the-key",
      "forced-release-removes-all-readers",
      "token-grows-after-forced-release",
    ],
  },
  {
    name: "a forced release removes one reader only",
    Store: class extends FullStore {
      override async forceRelease(request: KeyRequest): Promise<ReleaseOutcome> {
        const row = this.rowOf(request.key);
        const [owner] = isLock(row) ? row.ends.keys() : [];
        return owner === undefined ? "not-held" : this.release({ ...request, owner });
      }
    },
    caughtBy: ["forced-release-removes-all-readers"],
  },
  {
    name: "a forced release frees all keys",
    Store: class extends FullStore {
      override async forceRelease(request: KeyRequest): Promise<ReleaseOutcome> {
        const outcome = await super.forceRelease(request);
        this.backend.rows.clear();
        return outcome;
      }
    },
    caughtBy: ["forced-release-frees-the-key"],
  },
];
