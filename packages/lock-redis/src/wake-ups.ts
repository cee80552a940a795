import { randomBytes } from "node:crypto";
import type { RedisClient } from "./redis-client.ts";
import type { RedisSubscriber } from "./redis-subscriber.ts";
import { Subscription } from "./subscription.ts";

/** Where a lock and its line are kept, by their full names on the server. */
export interface LinedLock {
  readonly lock: string;
  readonly line: string;
  readonly client: RedisClient;
}

/** The names by which a store stands in a line: the one to use now, and the one in the other kind. */
export interface LineNames {
  readonly name: string;
  readonly other: string;
}

interface Listener {
  readonly channel: string;
  readonly onTurn: () => void;
}

/** How a store gets to hear that it is its turn. See `scripts/queue.ts` for the names in line. */
export class WakeUps {
  readonly #id = randomBytes(12).toString("base64url");
  readonly #keyPrefix: string;
  readonly #subscription: Subscription | undefined;
  /** Where this store is in line, by the name of the lock. */
  readonly #inLine = new Map<string, Listener>();
  #closed = false;

  constructor(options: { readonly keyPrefix: string; readonly subscriber: RedisSubscriber | false | undefined }) {
    const { keyPrefix, subscriber } = options;
    this.#keyPrefix = keyPrefix;
    if (subscriber === false) return;
    this.#subscription = new Subscription({
      given: subscriber,
      onMessage: (lock) => this.#inLine.get(lock)?.onTurn(),
      onHeard: (channel) => {
        for (const listener of this.#inLine.values()) if (listener.channel === channel) listener.onTurn();
      },
    });
  }

  names({ line, client }: LinedLock): LineNames {
    const silent = `-${this.#id}`;
    const channel = this.#channel(line, client);
    const audible = (client.isCluster === true ? "*" : "+") + channel;
    return this.#subscription?.hears(channel) === true
      ? { name: audible, other: silent }
      : { name: silent, other: audible };
  }

  /**
   * From now on `onTurn` is called when a message for the lock comes, and when it becomes possible to get one. To be called
   * before the request that gets in line: the message may be faster than the answer.
   */
  listen({ lock, line, client }: LinedLock, onTurn: () => void): void {
    this.#inLine.set(lock, { channel: this.#channel(line, client), onTurn });
  }

  /** Sees to it that messages come, for a store that has to wait. */
  subscribe({ line, client }: LinedLock): void {
    if (!this.#closed) this.#subscription?.want(this.#channel(line, client), client);
  }

  /** The store is no longer in line for the lock. */
  forget({ lock, client }: LinedLock): void {
    const listener = this.#inLine.get(lock);
    if (listener === undefined) return;
    this.#inLine.delete(lock);
    if (client.isCluster === true) this.#subscription?.drop(listener.channel);
    if (this.#inLine.size === 0) this.#subscription?.idle();
  }

  close(): void {
    this.#closed = true;
    this.#inLine.clear();
    this.#subscription?.close();
  }

  /** One for the store; on a Cluster one for each lock, in its slot. Prefixes are part of it, as an ACL expects. */
  #channel(line: string, client: RedisClient): string {
    if (client.isCluster === true) return `${line}:${this.#id}`;
    return `${client.options?.keyPrefix ?? ""}${this.#keyPrefix}lock-turns:${this.#id}`;
  }
}
