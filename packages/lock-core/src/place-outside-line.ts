import { systemClock } from "./clock.ts";
import type { LockStore } from "./store.ts";
import type {
  PlaceAcquireResult,
  PlaceReleaseRequest,
  PlaceReleaseResult,
  WaiterRequest,
  WaitPlace,
} from "./wait-queue.ts";

/**
 * How long a process may pass a lock on among its own waiters before it leaves it alone for one pause between attempts.
 * Otherwise the first of another process, which can only poll, would hardly ever find it free.
 */
const KEEP_MS = 1_000;

/** Stands in for a place of a store that keeps no line: whoever is first in this process asks, as anybody would. */
export class PlaceOutsideLine implements WaitPlace {
  readonly #store: LockStore;
  readonly #now: () => number;
  #keptSince: number;

  constructor(store: LockStore, now: () => number = systemClock.now) {
    this.#store = store;
    this.#now = now;
    this.#keptSince = now();
  }

  acquire({ waitedMs: _, ...request }: WaiterRequest): Promise<PlaceAcquireResult> {
    return this.#store.acquire(request);
  }

  async release({ next: _, ...owned }: PlaceReleaseRequest): Promise<PlaceReleaseResult> {
    const outcome = await this.#store.release(owned);
    if (this.#store.reach === "process" || this.#now() - this.#keptSince < KEEP_MS) return { outcome, next: "turn" };
    this.#keptSince = this.#now();
    return { outcome, next: "waits" };
  }

  async leave(): Promise<void> {}
}
