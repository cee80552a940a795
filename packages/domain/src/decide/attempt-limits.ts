import type { AttemptRecord, UpgradeRecord } from "./facts.ts";

/** How often, and how soon again, a firmware is tried on a device. */
export interface AttemptLimits {
  /** A firmware that was tried this often on a device is not tried again until an operator resets the record. */
  readonly maxAttempts: number;
  /** The pause after a record's first attempt; it doubles with each further one. */
  readonly backoffSeconds: number;
}

/** A firmware that is tried at all is tried again the next day, however often it was tried before. */
const LONGEST_BACKOFF_MS = 24 * 60 * 60_000;

/**
 * The least pause after an offer that was taken back. It uses up no attempt, so that this alone, doubling, keeps a device
 * that is in a rollout at one check and not at the next from having an attempt with each.
 */
const LEAST_BACKOFF_TAKEN_BACK_SECONDS = 60;

/** Why the record's next attempt may not be opened now, or `undefined` when it may. */
export type AttemptRefusal =
  | {
      /** An operator has cancelled it, and has not taken that back. */
      readonly reason: "UPGRADE_CANCELLED";
    }
  | { readonly reason: "ATTEMPTS_EXHAUSTED" }
  | {
      readonly reason: "BACKOFF";
      /** When the next attempt is due. */
      readonly endsAt: Date;
    };

export function attemptRefusal(
  record: UpgradeRecord | undefined,
  context: {
    readonly limits: AttemptLimits;
    readonly now: Date;
    /** Whether a rollout can still offer anything. */
    readonly isOpen: (rolloutId: bigint) => boolean;
  },
): AttemptRefusal | undefined {
  const { limits, now, isOpen } = context;
  if (record === undefined) return undefined;
  if (record.attempts.at(-1)?.cancelOutcome === "cancelled") return { reason: "UPGRADE_CANCELLED" };
  // One that was superseded, or cancelled with its rollout, says nothing about firmware or device: that was our own choice.
  const pausing = record.attempts.filter(
    ({ n, state, rolloutId }) =>
      n > record.attemptsForgiven && state !== "superseded" && (state !== "cancelled" || isOpen(rolloutId)),
  );
  const counted = pausing.filter((attempt) => !isTakenBack(attempt));
  if (counted.length >= limits.maxAttempts) return { reason: "ATTEMPTS_EXHAUSTED" };
  const last = pausing.at(-1);
  if (last?.closedAt == null) return undefined;
  const { closedAt } = last;
  const backoffMs = isTakenBack(last)
    ? backoffAfter(pausing.length, Math.max(limits.backoffSeconds, LEAST_BACKOFF_TAKEN_BACK_SECONDS))
    : backoffAfter(counted.length, limits.backoffSeconds);
  const endsAt = new Date(closedAt.getTime() + backoffMs);
  return now < endsAt ? { reason: "BACKOFF", endsAt } : undefined;
}

/** Whether the service has taken the offer back, and the device had not begun. */
function isTakenBack({ state, cancelOutcome }: AttemptRecord): boolean {
  return state === "cancelled" && cancelOutcome === "superseded";
}

function backoffAfter(attempts: number, backoffSeconds: number): number {
  const firstMs = backoffSeconds * 1000;
  // A first pause that is longer than a day is what the operator wants.
  return Math.min(firstMs * 2 ** (attempts - 1), Math.max(firstMs, LONGEST_BACKOFF_MS));
}
