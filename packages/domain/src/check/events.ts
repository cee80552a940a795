import type { AttemptState, NoneReason } from "../vocabulary.ts";

/** What happened during checks, for metrics: each one as a fact that is over. */
export type CheckEvent =
  /** A check was answered. */
  | { readonly kind: "decided"; readonly decision: "update"; readonly how: HowAnswered }
  | { readonly kind: "decided"; readonly decision: "none"; readonly reason: NoneReason }
  /** An attempt was opened. */
  | { readonly kind: "created" }
  /** An attempt that was open, or had timed out, is in another state now: by a report, by a check, or by the service. */
  | { readonly kind: "moved"; readonly to: AttemptState }
  /** The lock was asked for: acquired, held by somebody else all the time, or its store was at fault. */
  | { readonly kind: "lock"; readonly outcome: "acquired" | "contended" | "fault"; readonly waitedMs: number }
  /** The lock was not asked for, because its store was at fault a moment ago. */
  | { readonly kind: "lock_skipped" }
  | { readonly kind: "breaker"; readonly state: "open" | "closed" }
  /** Another process had inserted first: the database constraints did what the lock would have spared. */
  | { readonly kind: "conflict_lost" };

/**
 * How an update was answered: `found` the open attempt without the lock; `created` by this call; `joined` one that
 * another call had created meanwhile.
 */
export type HowAnswered = "found" | "created" | "joined";

/** Receives events as they happen. It is called synchronously, must be quick, and must not throw. */
export type CheckObserver = (event: CheckEvent) => void;
