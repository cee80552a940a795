import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";
import type { LockError, StoreOperation } from "./errors.ts";
import type { LockMode } from "./store.ts";

/**
 * What locks tell on `node:diagnostics_channel`, by the names of the channels. Events are published in the moment that
 * they are about, and cost nothing while nobody has subscribed. No event carries an owner token.
 */
export interface LockEvents {
  /** A lease was granted. */
  readonly "ota:lock:acquired": WaitEvent;
  /** An attempt was refused, as somebody else holds the lock. A waiting acquire goes on. */
  readonly "ota:lock:contended": AttemptEvent;
  /** A waiting acquire has reached its limit, and throws a `LockTimeoutError`. */
  readonly "ota:lock:timed-out": WaitEvent;
  /** A lease was extended, by its holder or by itself. */
  readonly "ota:lock:extended": LeaseEvent;
  /** A shared lease has become exclusive. */
  readonly "ota:lock:promoted": LeaseEvent;
  /** An exclusive lease has become shared. */
  readonly "ota:lock:demoted": LeaseEvent;
  /** A lease was given back in time. */
  readonly "ota:lock:released": LeaseEvent;
  /** A lease has turned out to be lost. A lapsed one tells it when it is next looked at, or has a signal to abort. */
  readonly "ota:lock:lost": LostEvent;
  /** A store failed, whoever was told; also one of a `CombinedStore` that could do without it. */
  readonly "ota:lock:failed": FailedEvent;
}

/** What every event of a lock says. */
export interface LockEvent {
  readonly key: string;
  /** The store's name. */
  readonly store: string;
}

export interface AttemptEvent extends LockEvent {
  readonly mode: LockMode;
}

export interface WaitEvent extends AttemptEvent {
  /** How long the caller has waited, the requests included, in milliseconds. */
  readonly waitMs: number;
  /** How many attempts were made, the last one included. */
  readonly attempts: number;
}

export interface LeaseEvent extends LockEvent {
  /** The mode of the lease, after the event. */
  readonly mode: LockMode;
  /** How long the lease has been held so far, from when the request for it left, in milliseconds. */
  readonly holdMs: number;
}

export interface LostEvent extends LeaseEvent {
  /** Why, as a phrase. */
  readonly reason: string;
}

export interface FailedEvent extends LockEvent {
  readonly operation: StoreOperation;
  readonly error: LockError;
}

/**
 * Calls `listener` for every event of the channel in this process, whichever lock it is of, until the returned function is
 * called. What a listener throws is an uncaught exception of the process, and changes nothing for the lock.
 */
export function onLockEvent<Name extends keyof LockEvents>(
  name: Name,
  listener: (event: LockEvents[Name]) => void,
): () => void {
  const subscriber = (event: unknown): void => listener(event as LockEvents[Name]);
  subscribe(name, subscriber);
  return () => void unsubscribe(name, subscriber);
}

/** A channel to publish on, to be asked for `hasSubscribers` before an event is put together. */
export interface EventChannel<Event> {
  readonly hasSubscribers: boolean;
  publish(event: Event): void;
}

type Channels = {
  readonly [Name in keyof LockEvents as Name extends `ota:lock:${infer Short}` ? Short : never]: EventChannel<
    LockEvents[Name]
  >;
};

/** The channels by the last part of their names. */
export const lockEvents: Channels = {
  acquired: channel("ota:lock:acquired"),
  contended: channel("ota:lock:contended"),
  "timed-out": channel("ota:lock:timed-out"),
  extended: channel("ota:lock:extended"),
  promoted: channel("ota:lock:promoted"),
  demoted: channel("ota:lock:demoted"),
  released: channel("ota:lock:released"),
  lost: channel("ota:lock:lost"),
  failed: channel("ota:lock:failed"),
};
