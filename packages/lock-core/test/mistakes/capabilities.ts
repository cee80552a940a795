import type { AcquireRequest, AcquireResult, OwnedKey } from "@ota/lock-core";
import { type FullBackend, FullStore } from "./full-store.ts";
import type { FullMistake, Mistake } from "./mistake.ts";
import { isLease, PlainStore } from "./plain-store.ts";

/** Mistakes of a store without capabilities about what it has not. */
export const lackMistakes: readonly Mistake[] = [
  {
    name: "mode shared is granted beside others, though there are no shared locks",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const row = this.rowOf(request.key);
        return request.mode === "shared" && isLease(row) ? { outcome: "granted" } : super.acquire(request);
      }
    },
    caughtBy: ["reserved-markers-are-no-owners", "shared-mode-without-shared-locks-is-exclusive"],
  },
  {
    name: "a capability is there that its test does not claim",
    Store: class extends PlainStore {
      checkFencing(_key: string): void {}
    },
    caughtBy: ["capabilities-are-claimed"],
  },
  {
    name: "the empty owner owns every lease",
    Store: class extends PlainStore {
      protected override holds(key: string, owner: string): boolean {
        return owner === "" ? isLease(this.rowOf(key)) : super.holds(key, owner);
      }
    },
    caughtBy: ["reserved-markers-are-no-owners"],
  },
  {
    name: "reserved owners are refused by an error that does not say why",
    Store: class extends PlainStore {
      override async isHeld(request: OwnedKey): Promise<boolean> {
        if (request.owner === "") throw new Error("bad request");
        return super.isHeld(request);
      }
    },
    caughtBy: ["reserved-markers-are-no-owners"],
  },
];

/** Mistakes of a store with every capability about having them. */
export const capabilityMistakes: readonly FullMistake[] = [
  {
    name: "a capability is claimed whose methods are missing",
    Store: class extends FullStore {
      constructor(backend: FullBackend) {
        super(backend);
        Object.assign(this, { forceRelease: undefined });
      }
    },
    caughtBy: [
      "inspection-shows-the-writer",
      "inspection-changes-nothing",
      "inspection-shows-no-lapsed-writer",
      "forced-release-frees-the-key",
      "inspection-shows-live-readers",
      "forced-release-removes-all-readers",
      "capabilities-are-claimed",
      "token-grows-after-forced-release",
    ],
  },
];
