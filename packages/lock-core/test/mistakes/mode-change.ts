import type {
  AcquireRequest,
  AcquireResult,
  DemoteOutcome,
  ExtendRequest,
  PromoteRequest,
  PromoteResult,
} from "@ota/lock-core";
import { FullStore, isLock } from "./full-store.ts";
import type { FullMistake } from "./mistake.ts";

/** Mistakes about becoming a writer or a reader while holding the key. */
export const modeChangeMistakes: readonly FullMistake[] = [
  {
    name: "a failed promotion drops the reader",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const result = await super.promote(request);
        if (result.outcome === "contended") await this.release(request);
        return result;
      }
    },
    caughtBy: [
      "promotion-is-refused-beside-readers",
      "refused-promotion-leaves-no-trace",
      "mode-changes-leave-nothing-behind",
    ],
  },
  {
    name: "a failed promotion sets the reader's end anew",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const result = await super.promote(request);
        if (result.outcome === "contended") await this.extend(request);
        return result;
      }
    },
    caughtBy: ["promotion-is-refused-beside-readers", "refused-promotion-leaves-no-trace"],
  },
  {
    name: "a failed promotion keeps new readers out",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const result = await super.promote(request);
        const row = this.rowOf(request.key);
        if (result.outcome === "contended" && isLock(row)) row.mode = "exclusive";
        return result;
      }
    },
    caughtBy: ["promotion-is-refused-beside-readers", "refused-promotion-leaves-no-trace"],
  },
  {
    name: "a reader is promoted beside others",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const result = await super.promote(request);
        return result.outcome === "contended" ? { outcome: "promoted", ...this.hold(request, "exclusive") } : result;
      }
    },
    caughtBy: [
      "promotion-is-refused-beside-readers",
      "refused-promotion-leaves-no-trace",
      "promotion-races-with-a-new-reader",
    ],
  },
  {
    name: "a promotion of a lapsed lease takes the free key",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const result = await super.promote(request);
        if (result.outcome !== "lost" || this.rowOf(request.key) !== undefined) return result;
        return { outcome: "promoted", ...this.hold(request, "exclusive") };
      }
    },
    caughtBy: ["lapsed-reader-is-not-promoted", "mode-changes-leave-nothing-behind", "lapsed-lease-is-not-restored"],
  },
  {
    name: "a promotion of a lapsed lease beside others says contended",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const result = await super.promote(request);
        return result.outcome === "lost" && this.rowOf(request.key) !== undefined ? { outcome: "contended" } : result;
      }
    },
    caughtBy: ["lapsed-reader-is-not-promoted"],
  },
  {
    name: "a promotion says promoted and changes nothing",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const lock = this.lockOf(request);
        const mode = lock?.mode ?? "shared";
        const result = await super.promote(request);
        if (lock !== undefined) lock.mode = mode;
        return result;
      }
    },
    caughtBy: ["sole-reader-promotes", "promotion-mints-a-token"],
  },
  {
    name: "a promotion releases, then acquires",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const lock = this.lockOf(request);
        if (lock === undefined || lock.ends.size > 1 || lock.mode === "exclusive") return super.promote(request);
        await super.release(request);
        await undefined;
        const { outcome, ...granted } = await super.acquire(request);
        return outcome === "granted" ? { outcome: "promoted", ...granted } : { outcome: "contended" };
      }
    },
    caughtBy: ["no-writer-enters-during-a-change"],
  },
  {
    name: "a promotion checks for readers, then acts",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const lock = this.lockOf(request);
        if (lock === undefined) return { outcome: "lost" };
        if (lock.ends.size > 1) return { outcome: "contended" };
        await undefined;
        return { outcome: "promoted", ...this.hold(request, "exclusive") };
      }
    },
    caughtBy: ["promotion-races-with-a-new-reader"],
  },
  {
    name: "a promotion keeps the old end",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const endsAt = this.lockOf(request)?.ends.get(request.owner);
        const result = await super.promote(request);
        if (result.outcome === "promoted" && endsAt !== undefined)
          this.lockOf(request)?.ends.set(request.owner, endsAt);
        return result;
      }
    },
    caughtBy: ["mode-change-starts-the-ttl-anew"],
  },
  {
    name: "a writer cannot be promoted",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        return this.lockOf(request)?.mode === "exclusive" ? { outcome: "contended" } : super.promote(request);
      }
    },
    caughtBy: ["mode-change-may-be-sent-twice", "promotion-mints-a-token", "lease-is-handed-over"],
  },
  {
    name: "a demotion releases, then acquires",
    Store: class extends FullStore {
      override async demote(request: ExtendRequest): Promise<DemoteOutcome> {
        if ((await super.release(request)) === "not-held") return "lost";
        await undefined;
        return (await super.acquire({ ...request, mode: "shared" })).outcome === "granted" ? "demoted" : "lost";
      }
    },
    caughtBy: ["no-writer-enters-during-a-change"],
  },
  {
    name: "a demotion says demoted and changes nothing",
    Store: class extends FullStore {
      override async demote(request: ExtendRequest): Promise<DemoteOutcome> {
        return (await super.extend(request)) === "lost" ? "lost" : "demoted";
      }
    },
    caughtBy: [
      "writer-demotes",
      "mode-change-may-be-sent-twice",
      "mode-changes-leave-nothing-behind",
      "demotion-keeps-the-tokens-in-order",
    ],
  },
  {
    name: "a demotion takes a free key",
    Store: class extends FullStore {
      override async demote(request: ExtendRequest): Promise<DemoteOutcome> {
        this.reachBackend("demote", request.key);
        if (this.rowOf(request.key) === undefined) this.hold(request, "shared");
        return super.demote(request);
      }
    },
    caughtBy: ["demotion-needs-a-live-lease", "mode-changes-leave-nothing-behind"],
  },
  {
    name: "a demotion does not check the owner",
    Store: class extends FullStore {
      override async demote(request: ExtendRequest): Promise<DemoteOutcome> {
        const outcome = await super.demote(request);
        const row = this.rowOf(request.key);
        if (outcome === "demoted" || !isLock(row)) return outcome;
        row.mode = "shared";
        return "demoted";
      }
    },
    caughtBy: ["demotion-needs-a-live-lease"],
  },
  {
    name: "a demotion keeps the old end",
    Store: class extends FullStore {
      override async demote(request: ExtendRequest): Promise<DemoteOutcome> {
        const endsAt = this.lockOf(request)?.ends.get(request.owner);
        const outcome = await super.demote(request);
        if (endsAt !== undefined) this.lockOf(request)?.ends.set(request.owner, endsAt);
        return outcome;
      }
    },
    caughtBy: ["mode-change-starts-the-ttl-anew"],
  },
  {
    name: "a demoted writer leaves its marker under the key",
    Store: class extends FullStore {
      override async demote(request: ExtendRequest): Promise<DemoteOutcome> {
        const outcome = await super.demote(request);
        if (outcome === "demoted") this.backend.rows.set(`${request.key} marker`, "writer");
        return outcome;
      }
    },
    caughtBy: ["mode-changes-leave-nothing-behind"],
  },
  {
    name: "an acquire in the other mode keeps the mode",
    Store: class extends FullStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        return super.acquire({ ...request, mode: this.lockOf(request)?.mode ?? request.mode });
      }
    },
    caughtBy: ["holder-changes-mode-by-acquire"],
  },
];
