import { LockOptionsError, MAX_TTL_MS } from "@ota/lock-core";
import { isCompanionName } from "./companion-keys.ts";
import type { RedisClient } from "./redis-client.ts";
import type { RedisSubscriber } from "./redis-subscriber.ts";
import type { ReplicaAcknowledgement, ReplicaOptions } from "./replica-options.ts";

/** The longest delay that a timer of Node can have. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The member that symfony/lock sets beside the holder of a write lock: an owner of that name would own all of them. */
const WRITE_MARKER = "__write__";

/** New PHP processes overwrite this key of symfony/lock, with their prefix, to find out whether scripts may ask TIME. */
const PROBE_KEY = "symfony_check_support_time";

const OPTIONS = ["keyPrefix", "commandTimeoutMs", "subscriber", "peers", "yieldToPollersEveryMs", "replicas"];

export function checkClient(client: RedisClient): RedisClient {
  if (typeof client?.evalsha !== "function" || typeof client.eval !== "function") {
    throw new LockOptionsError({
      option: "client",
      value: client,
      expected: "a client of ioredis (Redis or Cluster), or a function that returns one",
    });
  }
  return client;
}

/** An option that is misspelt is refused, never ignored. */
export function checkOptionNames(options: object): void {
  for (const [option, value] of Object.entries(options)) {
    if (!OPTIONS.includes(option)) {
      throw new LockOptionsError({ option, value, expected: `left out: the options are ${OPTIONS.join(", ")}` });
    }
  }
}

export function checkKeyPrefix(keyPrefix: string): string {
  if (typeof keyPrefix !== "string" || !keyPrefix.isWellFormed()) {
    throw new LockOptionsError({ option: "keyPrefix", value: keyPrefix, expected: "a string of well-formed Unicode" });
  }
  return keyPrefix;
}

export function checkCommandTimeoutMs(commandTimeoutMs: number): number {
  if (!Number.isInteger(commandTimeoutMs) || commandTimeoutMs < 1 || commandTimeoutMs > MAX_TIMER_MS) {
    throw new LockOptionsError({
      option: "commandTimeoutMs",
      value: commandTimeoutMs,
      expected: `an integer of milliseconds from 1 to ${MAX_TIMER_MS}`,
    });
  }
  return commandTimeoutMs;
}

export function checkSubscriber(subscriber: RedisSubscriber | false | undefined): RedisSubscriber | false | undefined {
  if (subscriber === undefined || subscriber === false) return subscriber;
  if (typeof subscriber?.subscribe === "function" && typeof subscriber.on === "function") return subscriber;
  const expected = "a client of ioredis (Redis or Cluster) for subscriptions alone, or false";
  throw new LockOptionsError({ option: "subscriber", value: subscriber, expected });
}

export function checkPeers<T>(peers: T): T {
  if (peers === "any" || peers === "node-only") return peers;
  throw new LockOptionsError({ option: "peers", value: peers, expected: "any or node-only" });
}

export function checkYieldToPollersEveryMs(everyMs: number | undefined): number | undefined {
  if (everyMs === undefined || (Number.isInteger(everyMs) && everyMs >= 200 && everyMs <= MAX_TIMER_MS)) return everyMs;
  throw new LockOptionsError({
    option: "yieldToPollersEveryMs",
    value: everyMs,
    expected: `an integer of milliseconds from 200 to ${MAX_TIMER_MS}`,
  });
}

/** With its defaults filled in; `undefined` where no replicas are waited for. */
export function checkReplicas(
  replicas: ReplicaOptions | undefined,
  { commandTimeoutMs, peers }: { readonly commandTimeoutMs: number; readonly peers: "any" | "node-only" },
): ReplicaAcknowledgement | undefined {
  if (replicas === undefined) return undefined;
  const { count, timeoutMs = Math.ceil(commandTimeoutMs / 2), ...others } = replicas;
  for (const [option, value] of Object.entries(others)) {
    throw new LockOptionsError({ option: `replicas.${option}`, value, expected: "left out" });
  }
  if (!Number.isInteger(count) || count < 1) {
    throw new LockOptionsError({ option: "replicas.count", value: count, expected: "an integer from 1 up" });
  }
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > commandTimeoutMs) {
    const expected = `an integer of milliseconds from 1 to commandTimeoutMs, ${commandTimeoutMs}`;
    throw new LockOptionsError({ option: "replicas.timeoutMs", value: timeoutMs, expected });
  }
  if (peers === "node-only") {
    const expected = "any together with replicas: what is passed on would not be confirmed by them";
    throw new LockOptionsError({ option: "peers", value: peers, expected });
  }
  return { count, timeoutMs };
}

/**
 * The full name of the lock's key. Any string will do but three kinds: one that UTF-8 cannot express (different ones would
 * become the same key), one that PHP's symfony/lock overwrites, and one that looks like a key kept beside a lock.
 */
export function checkKey(key: string, keyPrefix: string): string {
  if (typeof key !== "string" || !key.isWellFormed()) {
    throw new LockOptionsError({ option: "key", value: key, expected: "a string of well-formed Unicode" });
  }
  const name = keyPrefix + key;
  if (name.endsWith(PROBE_KEY)) {
    throw new LockOptionsError({
      option: "key",
      value: key,
      expected: `a name that does not end in ${PROBE_KEY}, a key that symfony/lock overwrites`,
      key,
    });
  }
  if (isCompanionName(name)) {
    const expected = "a name other than those of the keys kept beside locks, {…}:fence or {…}:queue";
    throw new LockOptionsError({ option: "key", value: key, expected, key });
  }
  return name;
}

/** Refuses what cannot be an owner token. The token itself is a secret and is not shown. */
export function checkOwner(owner: string, key: string): string {
  if (typeof owner !== "string" || owner === "" || owner === WRITE_MARKER || !owner.isWellFormed()) {
    throw new LockOptionsError({
      option: "owner",
      value: owner === "" || owner === WRITE_MARKER ? owner : typeof owner,
      expected: `a non-empty string of well-formed Unicode other than ${WRITE_MARKER}`,
      key,
    });
  }
  return owner;
}

export function checkTtlMs(ttlMs: number): number {
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > MAX_TTL_MS) {
    throw new LockOptionsError({
      option: "ttlMs",
      value: ttlMs,
      expected: `an integer of milliseconds from 1 to ${MAX_TTL_MS}`,
    });
  }
  return ttlMs;
}
