import type { AbortSignalLike } from "./abort-signal.ts";
import type { ResolvedWait } from "./options.ts";
import type { Notice, Waiter } from "./waiter.ts";

/** How a wait ended: with the value of an attempt, or without one when a limit was reached. */
export interface WaitResult<T> {
  readonly value: T | undefined;
  readonly waitedMs: number;
  readonly attempts: number;
}

/** What a wait works with, besides its limits. */
export interface WaitContext {
  readonly waiter: Waiter;
  /** Whether the waiter is the first of its process; the others' attempts are answered by that. */
  readonly isFirst: () => boolean;
  readonly signal: AbortSignalLike | undefined;
}

/** So many waiters do not ask in the same moment that a lease or somebody's turn has ended. */
const HINT_SPREAD_MS = 5;

/**
 * The one place where locks wait: calls `attempt` until it gives a value, or until a limit is reached. `undefined` from
 * an attempt means "held by someone else" and is the only reason to try again; an error ends the wait at once.
 *
 * An attempt follows when the waiter is woken, and after a pause in any case. The time limit says when the last attempt
 * may start: it is made right at the limit, and its answer is awaited.
 */
export async function waitFor<T>(
  attempt: () => Promise<T | undefined>,
  { waitTimeoutMs, maxAttempts, retryDelayMs, waiter, isFirst, signal }: ResolvedWait & WaitContext,
): Promise<WaitResult<T>> {
  for (let attempts = 1, last = false; ; attempts++) {
    const value = isFirst() ? await attempt() : undefined;
    if (value !== undefined) return { value, waitedMs: waiter.waitedMs(), attempts };

    let notice: Notice | undefined;
    do {
      const waitedMs = waiter.waitedMs();
      const remainingMs = waitTimeoutMs - waitedMs;
      if (last || attempts >= maxAttempts || remainingMs <= 0) return { value: undefined, waitedMs, attempts };

      // Behind others there is nothing to ask for, only a number of attempts to use up.
      const pauseMs = isFirst() || maxAttempts < Number.POSITIVE_INFINITY ? pauseOf(waiter, retryDelayMs) : remainingMs;
      notice = await waiter.pause(Math.min(pauseMs, remainingMs), signal);
      last = notice === undefined && pauseMs >= remainingMs;
    } while (notice === "moved-up");
  }
}

function pauseOf({ retryAfterMs }: Waiter, retryDelayMs: number): number {
  const pauseMs = retryDelayMs * (0.5 + Math.random() / 2);
  if (retryAfterMs === undefined) return pauseMs;
  return Math.min(pauseMs, Math.max(1, retryAfterMs + HINT_SPREAD_MS * Math.random()));
}
