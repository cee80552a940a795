import type { UpgradeRecord } from "./facts.ts";

/** How often, and how soon again, a firmware is tried on a device. */
export interface AttemptLimits {
  /** A firmware that was tried this often on a device is not tried again until an operator resets the record. */
  readonly maxAttempts: number;
  /** The pause after a record's first attempt; it doubles with each further one. */
  readonly backoffSeconds: number;
}

/** A firmware that is tried at all is tried again the next day, however often it was tried before. */
const LONGEST_BACKOFF_MS = 24 * 60 * 60_000;

/** Why the record's next attempt may not be opened now, or `undefined` when it may. */
export type AttemptRefusal =
  | { readonly reason: "ATTEMPTS_EXHAUSTED" }
  | {
      readonly reason: "BACKOFF";
      /** When the next attempt is due. */
      readonly endsAt: Date;
    };

export function attemptRefusal(
  record: UpgradeRecord | undefined,
  { limits, now }: { readonly limits: AttemptLimits; readonly now: Date },
): AttemptRefusal | undefined {
  // An attempt that was superseded was our own choice: it says nothing about firmware or device.
  const counted = (record?.attempts ?? []).filter(
    ({ n, state }) => n > (record?.attemptsForgiven ?? 0) && state !== "superseded",
  );
  if (counted.length >= limits.maxAttempts) return { reason: "ATTEMPTS_EXHAUSTED" };
  const closedAt = counted.at(-1)?.closedAt;
  if (closedAt == null) return undefined;
  const backoffMs = backoffAfter(counted.length, limits);
  const endsAt = new Date(closedAt.getTime() + backoffMs);
  return now < endsAt ? { reason: "BACKOFF", endsAt } : undefined;
}

function backoffAfter(attempts: number, { backoffSeconds }: AttemptLimits): number {
  const firstMs = backoffSeconds * 1000;
  // A first pause that is longer than a day is what the operator wants.
  return Math.min(firstMs * 2 ** (attempts - 1), Math.max(firstMs, LONGEST_BACKOFF_MS));
}
