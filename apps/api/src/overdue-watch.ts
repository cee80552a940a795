/** Something that is waited for. */
interface Waiting {
  readonly sinceMs: number;
  readonly onOverdue: () => void;
}

/** Watches over things that must not take longer than a limit; cheap enough for every statement. */
export interface OverdueWatch {
  /** Watches until the returned function is called. `onOverdue` may be called again as long as the wait lasts. */
  start(onOverdue: () => void): () => void;
  /** Ends the watch. */
  stop(): void;
}

/** Looks four times within the limit, so that something is noticed at the latest a quarter after it became overdue. */
export function createOverdueWatch(limitMs: number): OverdueWatch {
  const waiting = new Set<Waiting>();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    // In the order of their beginnings: the first that is still in time ends the look.
    for (const each of waiting) {
      if (nowMs - each.sinceMs < limitMs) break;
      each.onOverdue();
    }
  }, limitMs / 4).unref();
  return {
    start(onOverdue) {
      const each = { sinceMs: performance.now(), onOverdue };
      waiting.add(each);
      return () => waiting.delete(each);
    },
    stop() {
      clearInterval(timer);
    },
  };
}
