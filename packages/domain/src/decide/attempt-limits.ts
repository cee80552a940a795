import type { UpgradeRecord } from "./facts.ts";

/** A firmware that failed this often on a device is not tried again until an operator resets the record. */
export const MAX_ATTEMPTS = 3;

/** The pause after a record's first attempt; it doubles with each further one. Long enough for a slow reboot. */
const FIRST_BACKOFF_MS = 10 * 60_000;

/** Why the record's next attempt may not be opened now, or `undefined` when it may. */
export function attemptRefusal(
  record: UpgradeRecord | undefined,
  now: Date,
): "ATTEMPTS_EXHAUSTED" | "BACKOFF" | undefined {
  // An attempt that was superseded was our own choice: it says nothing about firmware or device.
  const counted = (record?.attempts ?? []).filter(
    ({ n, state }) => n > (record?.attemptsForgiven ?? 0) && state !== "superseded",
  );
  if (counted.length >= MAX_ATTEMPTS) return "ATTEMPTS_EXHAUSTED";
  const closedAt = counted.at(-1)?.closedAt;
  if (closedAt == null) return undefined;
  const backoffMs = FIRST_BACKOFF_MS * 2 ** (counted.length - 1);
  return now.getTime() < closedAt.getTime() + backoffMs ? "BACKOFF" : undefined;
}
