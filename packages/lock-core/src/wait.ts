import type { AbortSignalLike } from "./abort-signal.ts";
import { untilAborted } from "./abort-signal.ts";
import type { CancelTimer, Clock } from "./clock.ts";
import type { ResolvedWait } from "./options.ts";

/** How a wait ended: with the value of an attempt, or without one when a limit was reached. */
export type WaitResult<T> =
  | { readonly value: T }
  | { readonly value: undefined; readonly waitedMs: number; readonly attempts: number };

/** What a wait works with, besides its limits. */
export interface WaitContext {
  readonly clock: Clock;
  readonly signal: AbortSignalLike | undefined;
}

/**
 * The one place where locks wait: calls `attempt` until it gives a value, or until a limit is reached. `undefined` from
 * an attempt means "held by someone else" and is the only reason to try again; an error ends the wait at once.
 *
 * The time limit says when the last attempt may start: it is made right at the limit, and its answer is awaited.
 */
export async function waitFor<T>(
  attempt: () => Promise<T | undefined>,
  { waitTimeoutMs, maxAttempts, retryDelayMs, clock, signal }: ResolvedWait & WaitContext,
): Promise<WaitResult<T>> {
  const startedAt = clock.now();
  for (let attempts = 1, last = false; ; attempts++) {
    const value = await attempt();
    if (value !== undefined) return { value };

    const waitedMs = clock.now() - startedAt;
    const remainingMs = waitTimeoutMs - waitedMs;
    if (last || attempts >= maxAttempts || remainingMs <= 0) return { value: undefined, waitedMs, attempts };

    const pauseMs = retryDelayMs * (0.5 + Math.random() / 2);
    last = pauseMs >= remainingMs;
    await sleep(Math.min(pauseMs, remainingMs), { clock, signal });
  }
}

async function sleep(delayMs: number, { clock, signal }: WaitContext): Promise<void> {
  let cancel: CancelTimer | undefined;
  const elapsed = new Promise<void>((resolve) => {
    cancel = clock.setTimer(delayMs, resolve);
  });
  try {
    await untilAborted(elapsed, signal);
  } finally {
    cancel?.();
  }
}
