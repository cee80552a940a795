import type { CancelTimer, Clock } from "../clock.ts";

/**
 * A clock that stands still until it is told to go on, for tests of code that waits or outlives a lease. Give the same
 * one to the `LockFactory` and to the `MemoryState`.
 */
export class ManualClock implements Clock {
  #now = 0;
  readonly #timers = new Set<ManualTimer>();

  now(): number {
    return this.#now;
  }

  setTimer(delayMs: number, callback: () => void): CancelTimer {
    const timer = { at: this.#now + delayMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** How many timers are set and have not fired. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Moves on by `ms`, fires what falls due in its order, and lets what was waiting for it run in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await pendingWork();
    for (let next = this.#nextDue(end); next !== undefined; next = this.#nextDue(end)) {
      this.#now = Math.max(this.#now, next.at);
      this.#timers.delete(next);
      next.callback();
      await pendingWork();
    }
    this.#now = end;
    await pendingWork();
  }

  #nextDue(end: number): ManualTimer | undefined {
    const due = [...this.#timers].filter((timer) => timer.at <= end);
    return due.sort((one, other) => one.at - other.at)[0];
  }
}

interface ManualTimer {
  readonly at: number;
  readonly callback: () => void;
}

/** Resolves once every promise that was ready to go on has done so. */
function pendingWork(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
