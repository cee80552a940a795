import type { RedisClient } from "./redis-client.ts";
import { duplicateForSubscriptions, type RedisSubscriber, unrefConnection } from "./redis-subscriber.ts";

/** How long a connection of our own is kept when nobody waits any more. */
const IDLE_MS = 10_000;
/** After a failed connection the next one is not made at once. Until then the waiters poll. */
const RETRY_MS = 500;

export interface SubscriptionOptions {
  /** The client to listen on. Without one a duplicate of the store's client is made when it is needed. */
  readonly given: RedisSubscriber | undefined;
  readonly onMessage: (message: string) => void;
  /** Called when a channel that was wanted is heard. */
  readonly onHeard: (channel: string) => void;
}

/**
 * The store's one connection that listens. A given client is left as it was found. A connection of our own that is lost is
 * made anew for those who still wait; it keeps no process alive, and goes when nobody has waited for a while.
 */
export class Subscription {
  readonly #options: SubscriptionOptions;
  readonly #listeners: readonly (readonly [event: string, listener: (...args: string[]) => void])[];
  /** Every channel that is wanted, and whether messages of it are sure to come. */
  readonly #channels = new Map<string, boolean>();
  #subscriber: RedisSubscriber | undefined;
  #isSharded = false;
  #retryAt = 0;
  #idleSince: number | undefined;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    const onMessage = (_channel: string | undefined, message: string | undefined): void => {
      if (message !== undefined) options.onMessage(message);
    };
    this.#listeners = [
      ["message", onMessage],
      ["smessage", onMessage],
      ["connect", () => this.#onConnect()],
      ["ready", () => void this.#subscribe([...this.#channels.keys()])],
      ["close", () => this.#onClose()],
      ["error", () => {}], // Only says why it closes.
    ];
  }

  hears(channel: string): boolean {
    return this.#channels.get(channel) === true;
  }

  /** Sees to it that the channel is heard. */
  want(channel: string, client: RedisClient): void {
    this.#idleSince = undefined;
    if (this.#subscriber === undefined) this.#connect(client);
    if (this.#channels.has(channel)) return;
    this.#channels.set(channel, false);
    if (this.#subscriber?.status === "ready") void this.#subscribe([channel]);
  }

  drop(channel: string): void {
    if (!this.#channels.delete(channel) || this.#subscriber?.status !== "ready") return;
    const { sunsubscribe, unsubscribe } = this.#subscriber;
    (this.#isSharded ? sunsubscribe : unsubscribe).call(this.#subscriber, channel).catch(() => {}); // It is closing.
  }

  /** Nobody waits at the moment. */
  idle(): void {
    this.#idleSince ??= performance.now();
    if (this.#options.given === undefined) this.#idleTimer ??= setTimeout(() => this.#onIdle(), IDLE_MS).unref();
  }

  close(): void {
    clearTimeout(this.#idleTimer);
    for (const channel of [...this.#channels.keys()]) if (this.#options.given !== undefined) this.drop(channel);
    this.#channels.clear();
    this.#letGo();
  }

  #connect(client: RedisClient): void {
    const { given } = this.#options;
    if (performance.now() < this.#retryAt) return;
    this.#retryAt = performance.now() + RETRY_MS;
    const subscriber = given ?? duplicateForSubscriptions(client);
    if (subscriber === undefined) return;
    this.#subscriber = subscriber;
    this.#isSharded = client.isCluster === true;
    for (const [event, listener] of this.#listeners) subscriber.on(event, listener);
    if (subscriber.status === "ready") void this.#subscribe([...this.#channels.keys()]);
    else if (given === undefined) subscriber.connect().catch(() => this.#onClose());
  }

  #onConnect(): void {
    if (this.#subscriber !== undefined && this.#options.given === undefined) unrefConnection(this.#subscriber);
  }

  #onClose(): void {
    for (const channel of this.#channels.keys()) this.#channels.set(channel, false);
    if (this.#options.given === undefined) this.#letGo();
  }

  async #subscribe(channels: readonly string[]): Promise<void> {
    const subscriber = this.#subscriber;
    if (subscriber === undefined) return;
    // Sharded channels of several slots cannot be named in one command.
    const subscribe = (channel: string) =>
      this.#isSharded ? subscriber.ssubscribe(channel) : subscriber.subscribe(channel);
    for (const channel of channels) {
      try {
        await subscribe(channel);
      } catch {
        return; // It is closing, or refuses: then this store polls.
      }
      if (this.#subscriber !== subscriber || !this.#channels.has(channel)) continue;
      this.#channels.set(channel, true);
      this.#options.onHeard(channel);
    }
  }

  #onIdle(): void {
    this.#idleTimer = undefined;
    if (this.#idleSince === undefined) return;
    if (performance.now() - this.#idleSince < IDLE_MS - 1) {
      this.idle();
      return;
    }
    this.#channels.clear();
    this.#letGo();
  }

  #letGo(): void {
    const subscriber = this.#subscriber;
    this.#subscriber = undefined;
    if (subscriber === undefined) return;
    for (const [event, listener] of this.#listeners) {
      if (event !== "error" || this.#options.given !== undefined) subscriber.off(event, listener);
    }
    if (this.#options.given === undefined) subscriber.disconnect();
  }
}
