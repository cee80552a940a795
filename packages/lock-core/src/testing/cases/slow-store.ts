import type {
  AcquireRequest,
  AcquireResult,
  ExtendOutcome,
  ExtendRequest,
  LockStore,
  OwnedKey,
  ReleaseOutcome,
  StoreReach,
} from "../../store.ts";

/** Passes everything on, and holds up the next acquire or extend on its way to the store. */
export class SlowStore implements LockStore {
  readonly name: string;
  readonly reach: StoreReach;
  /** What the next acquire or extend has to wait for before it goes out. */
  beforeNext: () => Promise<void> = async () => {};
  /** The answer to the latest release, once one was asked for. */
  lastRelease: Promise<ReleaseOutcome> | undefined;
  readonly #store: LockStore;

  constructor(store: LockStore) {
    this.name = store.name;
    this.reach = store.reach;
    this.#store = store;
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    await this.#hold();
    return this.#store.acquire(request);
  }

  async extend(request: ExtendRequest): Promise<ExtendOutcome> {
    await this.#hold();
    return this.#store.extend(request);
  }

  release(request: OwnedKey): Promise<ReleaseOutcome> {
    this.lastRelease = this.#store.release(request);
    return this.lastRelease;
  }

  isHeld(request: OwnedKey): Promise<boolean> {
    return this.#store.isHeld(request);
  }

  async #hold(): Promise<void> {
    const hold = this.beforeNext;
    this.beforeNext = async () => {};
    await hold();
  }
}
