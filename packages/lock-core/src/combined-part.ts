import { CheckedStore } from "./checked-store.ts";
import type { LockStore, OwnedKey } from "./store.ts";

/** One of the stores of a combination, asked for each owner in turn: what was asked first reaches it first. */
export class CombinedPart {
  readonly store: CheckedStore;
  /** The last request of each owner that the store has not answered yet. */
  readonly #turns: Map<string, Promise<unknown>> = new Map();

  constructor(store: LockStore) {
    this.store = new CheckedStore(store);
  }

  /**
   * Calls `request` as soon as the store has answered what it was asked for this owner before. So the release of a grant
   * that is still on its way cannot overtake it.
   */
  inTurn<T>({ key, owner }: OwnedKey, request: (store: CheckedStore) => Promise<T>): Promise<T> {
    const id = `${owner.length}:${owner}${key}`;
    const ask = (): Promise<T> => request(this.store);
    const turn = this.#turns.get(id)?.then(ask, ask) ?? ask();
    const forget = (): void => {
      if (this.#turns.get(id) === turn) this.#turns.delete(id);
    };
    this.#turns.set(id, turn);
    turn.then(forget, forget);
    return turn;
  }
}
