/**
 * Keys of one load. Their answers come together: with more, each would wait for more of the others, and a crowd would
 * keep one of the database's processes busy and no other.
 */
const MAX_KEYS = 32;

/**
 * Loads together what is asked for one by one within one turn of the event loop: under load, what came in over many
 * connections. A load begins after its keys were asked for, so that nobody is given what was read before it asked; whoever
 * asks for the same key in the same turn shares it.
 */
export class Gathering<K, V> {
  readonly #load: (keys: readonly K[]) => Promise<readonly V[]>;
  readonly #apart: (key: K) => unknown;
  #asked = new Map<string, Asked<K, V>>();

  /** @param load gives a value for each key, in their order */
  constructor(
    load: (keys: readonly K[]) => Promise<readonly V[]>,
    options: {
      /** Keys for which it gives different things are never loaded together. @default all may be */
      readonly apart?: (key: K) => unknown;
    } = {},
  ) {
    this.#load = load;
    this.#apart = options.apart ?? (() => undefined);
  }

  /**
   * What the load gives for the key; it rejects as the load does.
   *
   * @param name tells keys apart
   */
  get(name: string, key: K): Promise<V> {
    let asked = this.#asked.get(name);
    if (asked === undefined) {
      // When all that has come in was read: immediates follow input.
      if (this.#asked.size === 0) setImmediate(() => this.#send());
      asked = { key, ...Promise.withResolvers<V>() };
      this.#asked.set(name, asked);
    }
    return asked.promise;
  }

  #send(): void {
    const groups = Map.groupBy(this.#asked.values(), ({ key }) => this.#apart(key));
    this.#asked = new Map();
    for (const asked of groups.values()) {
      for (let start = 0; start < asked.length; start += MAX_KEYS)
        void this.#answer(asked.slice(start, start + MAX_KEYS));
    }
  }

  async #answer(asked: readonly Asked<K, V>[]): Promise<void> {
    try {
      const values = await this.#load(asked.map(({ key }) => key));
      for (const [i, { resolve }] of asked.entries()) resolve(values[i] as V);
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }
}

interface Asked<K, V> extends PromiseWithResolvers<V> {
  readonly key: K;
}
