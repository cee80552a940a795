import type {
  AcquireRequest,
  AcquireResult,
  DemoteOutcome,
  ExtendOutcome,
  ExtendRequest,
  LockMode,
  OwnedKey,
  PromoteRequest,
  PromoteResult,
  ReleaseOutcome,
} from "@ota/lock-core";
import { FullStore, type HeldLock, isLock } from "./full-store.ts";
import type { FullMistake } from "./mistake.ts";

/** Mistakes about readers, and about becoming a writer or a reader. */
export const sharedMistakes: readonly FullMistake[] = [
  {
    name: "readers are granted exclusively",
    Store: class extends FullStore {
      protected override admits(lock: HeldLock, { owner }: { readonly owner: string }): boolean {
        return lock.ends.has(owner) && lock.ends.size === 1;
      }
    },
    caughtBy: [
      "many-readers-at-once",
      "inspection-shows-live-readers",
      "forced-release-removes-all-readers",
      "readers-leave-independently",
      "release-by-a-stranger-leaves-the-readers",
      "dead-reader-blocks-nobody",
      "dead-reader-is-not-kept-alive",
      "short-ttl-shortens-nobody",
      "promotion-is-refused-beside-readers",
      "refused-promotion-leaves-no-trace",
      "lapsed-reader-is-not-promoted",
      "writer-demotes",
      "mode-change-may-be-sent-twice",
      "holder-changes-mode-by-acquire",
      "mode-changes-leave-nothing-behind",
      "reader-gets-the-current-token",
      "demotion-keeps-the-tokens-in-order",
    ],
  },
  {
    name: "a reader keeps no writer out",
    Store: class extends FullStore {
      protected override admits(lock: HeldLock, asked: { readonly owner: string; readonly mode: LockMode }): boolean {
        return lock.mode === "shared" || super.admits(lock, asked);
      }
    },
    caughtBy: [
      "writer-is-refused-beside-a-reader",
      "refusal-between-modes-leaves-no-trace",
      "a-race-has-one-writer-or-readers",
      "readers-leave-independently",
      "short-ttl-shortens-nobody",
      "promotion-is-refused-beside-readers",
      "no-writer-enters-during-a-change",
      "writer-demotes",
      "holder-changes-mode-by-acquire",
    ],
  },
  {
    name: "a writer keeps no reader out",
    Store: class extends FullStore {
      protected override admits(lock: HeldLock, asked: { readonly owner: string; readonly mode: LockMode }): boolean {
        return asked.mode === "shared" || super.admits(lock, asked);
      }
    },
    caughtBy: [
      "reader-is-refused-beside-a-writer",
      "refusal-between-modes-leaves-no-trace",
      "a-race-has-one-writer-or-readers",
      "sole-reader-promotes",
      "promotion-races-with-a-new-reader",
      "demotion-needs-a-live-lease",
      "mode-change-may-be-sent-twice",
      "holder-changes-mode-by-acquire",
      "reserved-markers-are-no-owners",
    ],
  },
  {
    name: "an acquire checks for readers, then acts",
    Store: class extends FullStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const { key, owner, mode = "exclusive" } = request;
        if (mode === "exclusive" || this.lockOf(request) !== undefined) return super.acquire(request);
        this.reachBackend("acquire", key);
        const row = this.rowOf(key);
        if (typeof row === "string" || (row !== undefined && !this.admits(row, { owner, mode }))) {
          return { outcome: "contended" };
        }
        await undefined;
        return { outcome: "granted", ...this.hold(request, "shared") };
      }
    },
    caughtBy: ["a-race-has-one-writer-or-readers", "promotion-races-with-a-new-reader"],
  },
  {
    name: "a refused writer is noted as one more reader",
    Store: class extends FullStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const result = await super.acquire(request);
        const row = this.rowOf(request.key);
        if (result.outcome === "contended" && isLock(row) && row.mode === "shared") {
          row.ends.set(request.owner, this.now() + request.ttlMs);
        }
        return result;
      }
    },
    caughtBy: [
      "writer-is-refused-beside-a-reader",
      "refusal-between-modes-leaves-no-trace",
      "promotion-is-refused-beside-readers",
    ],
  },
  {
    name: "a grant to a reader that holds the key keeps the old end",
    Store: class extends FullStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const holds = request.mode === "shared" && this.lockOf(request)?.mode === "shared" && request.fencing !== true;
        return holds ? { outcome: "granted" } : super.acquire(request);
      }
    },
    caughtBy: ["reader-is-granted-again"],
  },
  {
    name: "a release frees the key, whoever is left",
    Store: class extends FullStore {
      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        const outcome = await super.release(request);
        if (outcome === "released") this.backend.rows.delete(request.key);
        return outcome;
      }
    },
    caughtBy: [
      "readers-leave-independently",
      "short-ttl-shortens-nobody",
      "promotion-is-refused-beside-readers",
      "writer-demotes",
      "mode-changes-leave-nothing-behind",
      "reader-gets-the-current-token",
      "demotion-keeps-the-tokens-in-order",
    ],
  },
  {
    name: "all readers end with the longest",
    Store: class extends FullStore {
      protected override isLapsed(_endsAt: number, { ends }: HeldLock): boolean {
        return Math.max(...ends.values()) <= this.now();
      }
    },
    caughtBy: [
      "inspection-shows-live-readers",
      "dead-reader-is-not-kept-alive",
      "promotion-is-refused-beside-readers",
      "lapsed-reader-is-not-promoted",
    ],
  },
  {
    name: "all readers end with the one that came last",
    Store: class extends FullStore {
      protected override isLapsed(_endsAt: number, { ends }: HeldLock): boolean {
        return ([...ends.values()].at(-1) ?? 0) <= this.now();
      }
    },
    caughtBy: [
      "inspection-shows-live-readers",
      "dead-reader-blocks-nobody",
      "dead-reader-is-not-kept-alive",
      "short-ttl-shortens-nobody",
      "promotion-is-refused-beside-readers",
      "lapsed-reader-is-not-promoted",
    ],
  },
  {
    name: "a short TTL shortens the other readers",
    Store: class extends FullStore {
      protected override isLapsed(_endsAt: number, { ends }: HeldLock): boolean {
        return Math.min(...ends.values()) <= this.now();
      }
    },
    caughtBy: [
      "inspection-shows-live-readers",
      "dead-reader-blocks-nobody",
      "short-ttl-shortens-nobody",
      "promotion-is-refused-beside-readers",
    ],
  },
  {
    name: "a lapsed reader is revived while another is live",
    Store: class extends FullStore {
      readonly #lapsed = new Map<string, Set<string>>();

      override async isHeld(request: OwnedKey): Promise<boolean> {
        const row = this.backend.rows.get(request.key);
        const before = isLock(row) ? [...row.ends.keys()] : [];
        const held = await super.isHeld(request);
        const lapsed = before.filter((owner) => !isLock(row) || !row.ends.has(owner));
        this.#lapsed.set(request.key, new Set([...(this.#lapsed.get(request.key) ?? []), ...lapsed]));
        return held;
      }

      override async extend(request: ExtendRequest): Promise<ExtendOutcome> {
        const row = this.rowOf(request.key);
        if (isLock(row) && this.#lapsed.get(request.key)?.has(request.owner)) this.hold(request, row.mode);
        return super.extend(request);
      }
    },
    caughtBy: ["dead-reader-is-not-kept-alive"],
  },
  {
    name: "lapsed readers count until the last one has ended",
    Store: class extends FullStore {
      protected override rowOf(key: string): HeldLock | string | undefined {
        const row = this.backend.rows.get(key);
        return isLock(row) && Math.max(...row.ends.values()) > this.now() ? row : super.rowOf(key);
      }

      protected override lockOf(owned: OwnedKey): HeldLock | undefined {
        const lock = super.lockOf(owned);
        return (lock?.ends.get(owned.owner) ?? 0) > this.now() ? lock : undefined;
      }
    },
    caughtBy: ["inspection-shows-live-readers", "promotion-is-refused-beside-readers", "lapsed-reader-is-not-promoted"],
  },
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
  {
    name: "readers are counted, not known",
    Store: class extends FullStore {
      protected override lockOf({ key, owner }: OwnedKey): HeldLock | undefined {
        const row = this.rowOf(key);
        return isLock(row) && row.mode === "shared" ? row : super.lockOf({ key, owner });
      }
    },
    caughtBy: [
      "many-readers-at-once",
      "writer-is-refused-beside-a-reader",
      "refusal-between-modes-leaves-no-trace",
      "readers-leave-independently",
      "release-by-a-stranger-leaves-the-readers",
      "dead-reader-is-not-kept-alive",
      "lapsed-reader-is-not-promoted",
    ],
  },
  {
    name: "the marker of writers owns every writer's lease",
    Store: class extends FullStore {
      protected override lockOf({ key, owner }: OwnedKey): HeldLock | undefined {
        const row = this.rowOf(key);
        return owner === "__write__" && isLock(row) && row.mode === "exclusive" ? row : super.lockOf({ key, owner });
      }
    },
    caughtBy: ["reserved-markers-are-no-owners"],
  },
];
