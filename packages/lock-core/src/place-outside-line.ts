import type { LockStore } from "./store.ts";
import type {
  PlaceAcquireResult,
  PlaceReleaseRequest,
  PlaceReleaseResult,
  WaiterRequest,
  WaitPlace,
} from "./wait-queue.ts";

/** Stands in for a place of a store that keeps no line: whoever is first in this process asks, as anybody would. */
export class PlaceOutsideLine implements WaitPlace {
  readonly #store: LockStore;

  constructor(store: LockStore) {
    this.#store = store;
  }

  acquire({ waitedMs: _, ...request }: WaiterRequest): Promise<PlaceAcquireResult> {
    return this.#store.acquire(request);
  }

  async release({ next: _, ...owned }: PlaceReleaseRequest): Promise<PlaceReleaseResult> {
    return { outcome: await this.#store.release(owned), next: "turn" };
  }

  async leave(): Promise<void> {}
}
