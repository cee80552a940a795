import type {
  AcquireRequest,
  AcquireResult,
  ExtendOutcome,
  ExtendRequest,
  LockMode,
  OwnedKey,
  ReleaseOutcome,
} from "@ota/lock-core";
import { FullStore, type HeldLock, isLock } from "./full-store.ts";
import type { FullMistake } from "./mistake.ts";

/** Mistakes about readers beside each other and beside a writer. */
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
