import { isStoreFault } from "./errors.ts";
import type { AcquireRequest, AcquireResult, LockMode, OwnedKey, ReleaseOutcome } from "./store.ts";
import type { WaitPlace, WaitQueueStore } from "./wait-queue.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The waiters of this process, in one queue for each key of a store: first come, first served. Only the first of a queue
 * asks the store, and the store's own order among processes is about these first ones.
 */
export class LocalQueues {
  readonly #store: QueuedStore;
  readonly #queues = new Map<string, LocalQueue>();

  constructor(store: QueuedStore) {
    this.#store = store;
  }

  /** Puts the waiter at the end of the queue for the key. It must `leave` again, however its wait ends. */
  join(key: string, waiter: Waiter): LocalQueue {
    const queue = this.#queues.get(key) ?? this.#open(key);
    queue.add(waiter);
    return queue;
  }

  /** Releases the lease, and lets the first waiter for the key know. */
  release(owned: OwnedKey): Promise<ReleaseOutcome> {
    return this.#queues.get(owned.key)?.release(owned) ?? this.#store.release(owned);
  }

  #open(key: string): LocalQueue {
    const queue: LocalQueue = new LocalQueue({
      openPlace: (onTurn) => this.#store.openPlace({ key, onTurn }),
      onEmpty: () => this.#queues.delete(key),
    });
    this.#queues.set(key, queue);
    return queue;
  }
}

/** What queues use of their store. */
type QueuedStore = Pick<WaitQueueStore, "openPlace" | "release">;

/** The queue of this process for one key. */
export class LocalQueue {
  readonly #place: WaitPlace;
  readonly #onEmpty: () => void;
  readonly #waiters = new Set<Waiter>();
  /** The answer to what the store was asked last, whatever it is. */
  #answered: Promise<unknown> = Promise.resolve();
  /** Whether nobody of another process was in line at the last release. */
  #alone = false;

  constructor(options: { readonly openPlace: (onTurn: () => void) => WaitPlace; readonly onEmpty: () => void }) {
    this.#place = options.openPlace(() => this.#first()?.notify("woken"));
    this.#onEmpty = options.onEmpty;
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  isFirst(waiter: Waiter): boolean {
    return this.#first() === waiter;
  }

  /** Asks the store on behalf of the first waiter, unless it was handed a grant already. */
  async ask(waiter: Waiter, asked: AcquireRequest): Promise<AcquireResult & { readonly sentAt?: number }> {
    const { handedOver } = waiter;
    if (handedOver !== undefined) {
      waiter.handedOver = undefined;
      return { ...handedOver.grant, sentAt: handedOver.sentAt };
    }
    waiter.forgetNotice();
    const answer = this.#place.acquire({ ...asked, waitedMs: waiter.waitedMs() });
    this.#answered = answer.catch((fault: unknown) => this.#fail(waiter, fault));
    const result = await answer;
    waiter.retryAfterMs = result.outcome === "contended" ? result.retryAfterMs : undefined;
    return result;
  }

  /** The fault of a store ends every wait that depends on it, as it would if each waiter asked. */
  #fail(asker: Waiter, fault: unknown): void {
    if (!isStoreFault(fault)) return;
    for (const waiter of this.#waiters) if (waiter !== asker) waiter.fail(fault);
  }

  /** Takes the waiter out: with the mode of the lease that it got, or without one. */
  leave(waiter: Waiter, granted?: LockMode): void {
    const wasFirst = this.isFirst(waiter);
    this.#waiters.delete(waiter);
    waiter.isServed = granted !== undefined;
    if (waiter.handedOver !== undefined && !waiter.isServed) void this.#giveBack(waiter.request());
    const first = this.#first();
    if (first === undefined) {
      if (granted === undefined) void this.#close();
      else this.#onEmpty();
    } else if (wasFirst) {
      // A turn that the one before it had been told of may be waiting to be used. Behind a new holder there is none.
      const mayEnter = granted === undefined || (granted === "shared" && first.mode === "shared");
      first.notify(mayEnter ? "woken" : "moved-up");
    }
  }

  async release(owned: OwnedKey): Promise<ReleaseOutcome> {
    const waiter = this.#first();
    const sentAt = waiter?.now() ?? 0;
    const released = this.#place.release({ ...owned, next: waiter?.request() });
    if (this.#alone) waiter?.notify("woken");
    const { outcome, next, alone = false } = await released;
    this.#alone = alone;
    if (waiter !== undefined && typeof next === "object") {
      if (this.#waiters.has(waiter)) waiter.handedOver = { grant: next, sentAt };
      else if (!waiter.isServed) void this.#giveBack(waiter.request());
    }
    // Who left meanwhile has let its follower know.
    if (next !== "waits" && waiter !== undefined && this.#waiters.has(waiter)) waiter.notify("woken");
    return outcome;
  }

  /** A lease that its waiter was handed too late. A fault leaves it to its TTL, as after any failed release. */
  async #giveBack({ key, owner }: OwnedKey): Promise<void> {
    await this.release({ key, owner }).catch(() => {});
  }

  /** Leaves the store's line once what is under way is answered: it may still get in line by that. */
  async #close(): Promise<void> {
    await this.#answered;
    if (this.#first() !== undefined) return;
    this.#onEmpty();
    await this.#place.leave().catch(() => {}); // The store passes over a place that nobody uses.
  }

  #first(): Waiter | undefined {
    return this.#waiters.values().next().value;
  }
}
