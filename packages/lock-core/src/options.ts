import type { AbortSignalLike } from "./abort-signal.ts";
import type { Clock } from "./clock.ts";
import { LockOptionsError } from "./errors.ts";
import type { Logger } from "./logger.ts";
import { type LockMode, type LockStore, MAX_TTL_MS } from "./store.ts";

/** How long a waiting acquire tries. All limits hold; whichever is reached first ends the wait. */
export interface WaitOptions {
  /**
   * How long `acquire` waits for a held lock, in milliseconds: 0 (one attempt) to ten years. Not the lease's lifetime.
   * @default 10_000, or no limit in time when `maxAttempts` is given
   */
  readonly waitTimeoutMs?: number | undefined;
  /**
   * How many times `acquire` asks the store, 1 or more.
   * @default no limit
   */
  readonly maxAttempts?: number | undefined;
  /**
   * The longest pause between two attempts, in milliseconds, 1 or more. Each pause is a random part of it, from half to
   * all, so that waiters do not move in step.
   * @default 100
   */
  readonly retryDelayMs?: number | undefined;
}

/** How a lease lives on while it is held. */
export interface HoldOptions {
  /**
   * Whether the lease is extended by itself, by `ttlMs` each time and well before its end, until it is released or lost or
   * `maxHoldMs` is reached. Release such a lease: one that is forgotten lives as long as the process does.
   * @default false
   */
  readonly autoExtend?: boolean | undefined;
  /**
   * How long a lease may be held in all, in milliseconds, 1 or more, whatever extends it: what would go beyond is cut off,
   * and the lease then ends as lost.
   * @default no limit
   */
  readonly maxHoldMs?: number | undefined;
}

/** What a lock is made with. What is left out comes from the factory. */
export interface LockOptions extends WaitOptions, HoldOptions {
  /**
   * How long the store keeps a lease unless it is extended or released, in milliseconds: above 0, at most ten years.
   * Fractions are rounded up.
   * @default 30_000
   */
  readonly ttlMs?: number | undefined;
  /**
   * Whether leases carry a fencing token, which costs the store a second record for each key. Refused for a store that
   * has none.
   * @default false
   */
  readonly fencing?: boolean | undefined;
}

/** What all locks of one factory share, and the defaults of each. */
export interface LockFactoryOptions extends LockOptions {
  /**
   * Where the locks report what they do.
   * @default warnings and errors go to `process.emitWarning`
   */
  readonly logger?: Logger | undefined;
  /**
   * Where the locks get their time from.
   * @default Node's monotonic clock
   */
  readonly clock?: Clock | undefined;
}

/** Options of a restored lease. What is left out comes from the factory. */
export interface RestoreOptions extends HoldOptions {
  /**
   * How long the lease is to live from now on, and by how much it is extended later, as in {@link LockOptions}.
   * @default 30_000
   */
  readonly ttlMs?: number | undefined;
}

/** Options of one attempt. What is left out of how the lease lives on comes from the lock. */
export interface TryAcquireOptions extends HoldOptions {
  /**
   * `shared` lets other shared leases in beside this one, and no exclusive lease. On a store without shared locks the lease
   * is an exclusive one all the same.
   * @default "exclusive"
   */
  readonly mode?: LockMode | undefined;
  /** Gives up as soon as it aborts, also in the middle of a request: the call rejects with `signal.reason`. */
  readonly signal?: AbortSignalLike | undefined;
}

/** Options of a waiting acquire. What is left out comes from the lock. */
export interface AcquireOptions extends WaitOptions, TryAcquireOptions {}

/** Wait options with every default filled in; `Infinity` where there is no limit. */
export interface ResolvedWait {
  readonly waitTimeoutMs: number;
  readonly maxAttempts: number;
  readonly retryDelayMs: number;
}

/** Hold options with every default filled in; `Infinity` where there is no limit. */
export interface ResolvedHold {
  readonly autoExtend: boolean;
  readonly maxHoldMs: number;
}

const DEFAULT_TTL_MS = 30_000;
const DEFAULT_WAIT_TIMEOUT_MS = 10_000;
/** As often as symfony/lock polls: a faster poller would starve PHP waiters on a shared Redis. */
const DEFAULT_RETRY_DELAY_MS = 100;

/** Options of a `CombinedStore`. */
export interface CombinedStoreOptions {
  /**
   * How many stores have to agree. `consensus`: more than half, so that a minority may fail. `unanimous`: all of them, so
   * that any one that fails stops everything; for moving from one store to another.
   * @default "consensus"
   */
  readonly strategy?: "consensus" | "unanimous" | undefined;
  /**
   * How long one store is waited for, in milliseconds, 1 or more. Then it counts as failed.
   * @default 500
   */
  readonly storeTimeoutMs?: number | undefined;
  /**
   * By what part of a TTL the clocks of the stores and of this process may run apart, from 0 to 1. So much of a lease's
   * lifetime, and 2 ms more, its holder does not count on.
   * @default 0.01
   */
  readonly driftFactor?: number | undefined;
  /**
   * Where the timeout gets its time from.
   * @default Node's monotonic clock
   */
  readonly clock?: Clock | undefined;
}

const COMBINED_NAMES = ["strategy", "storeTimeoutMs", "driftFactor", "clock"];
const WAIT_NAMES = ["waitTimeoutMs", "maxAttempts", "retryDelayMs"] as const;
const HOLD_NAMES = ["autoExtend", "maxHoldMs"] as const;
const LOCK_NAMES = ["ttlMs", "fencing", ...HOLD_NAMES, ...WAIT_NAMES] as const;
const FACTORY_NAMES = [...LOCK_NAMES, "logger", "clock"];
const RESTORE_NAMES = ["ttlMs", ...HOLD_NAMES];
const TRY_NAMES = ["mode", "signal", ...HOLD_NAMES];
const ACQUIRE_NAMES = [...WAIT_NAMES, ...TRY_NAMES];

/** What is asked for where no options are given. */
export const NO_OPTIONS: Readonly<Record<never, never>> = Object.freeze({});

/** The options in their checked form: rounded, and without those that are `undefined`. */
export const checkFactoryOptions = (options: LockFactoryOptions): LockFactoryOptions => check(options, FACTORY_NAMES);
export const checkLockOptions = (options: LockOptions): LockOptions => check(options, LOCK_NAMES);
/** Whether two checked options of a lock say the same. */
export const areSameLockOptions = (one: LockOptions, other: LockOptions): boolean =>
  LOCK_NAMES.every((name) => one[name] === other[name]);
export const checkCombinedOptions = (options: CombinedStoreOptions): CombinedStoreOptions =>
  check(options, COMBINED_NAMES);
export const checkRestoreOptions = (options: RestoreOptions): RestoreOptions => check(options, RESTORE_NAMES);
export const checkTryAcquireOptions = (options: TryAcquireOptions): TryAcquireOptions => check(options, TRY_NAMES);
export const checkAcquireOptions = (options: AcquireOptions): AcquireOptions => check(options, ACQUIRE_NAMES);

/** A lease's lifetime in whole milliseconds. */
export function resolveTtlMs(ttlMs: number | undefined): number {
  return ttlMs === undefined ? DEFAULT_TTL_MS : CHECKS.ttlMs("ttlMs", ttlMs);
}

/** How a lease lives on, from checked options. */
export function resolveHold({ autoExtend = false, maxHoldMs = Number.POSITIVE_INFINITY }: HoldOptions): ResolvedHold {
  return { autoExtend, maxHoldMs };
}

/** How one acquire waits, from checked options. */
export function resolveWait(options: WaitOptions): ResolvedWait {
  const { maxAttempts = Number.POSITIVE_INFINITY, retryDelayMs = DEFAULT_RETRY_DELAY_MS } = options;
  const bounded = options.maxAttempts !== undefined;
  return {
    waitTimeoutMs: options.waitTimeoutMs ?? (bounded ? Number.POSITIVE_INFINITY : DEFAULT_WAIT_TIMEOUT_MS),
    maxAttempts,
    retryDelayMs,
  };
}

/** Refuses a store that has not the four operations, such as a bare Redis client. */
export function checkStore(store: LockStore): LockStore {
  return requireMethods(["acquire", "extend", "release", "isHeld"])("store", store);
}

/** Refuses a key that is no string, or that no backend could keep byte for byte. */
export function checkKey(key: string): string {
  // Lone surrogates have no UTF-8 form: written to a backend, different keys of this kind would become one.
  if (typeof key === "string" && key.isWellFormed()) return key;
  throw new LockOptionsError({ option: "key", value: key, expected: "a string without lone surrogates" });
}

type Check = <T>(option: string, value: T) => T;

const CHECKS = {
  ttlMs: milliseconds({ min: 1 }),
  waitTimeoutMs: milliseconds({ min: 0 }),
  retryDelayMs: milliseconds({ min: 1 }),
  maxAttempts: (option, value) => {
    if (Number.isSafeInteger(value) && Number(value) >= 1) return value;
    throw new LockOptionsError({ option, value, expected: "an integer from 1 up" });
  },
  fencing: oneOf([true, false]),
  strategy: oneOf(["consensus", "unanimous"]),
  storeTimeoutMs: milliseconds({ min: 1 }),
  driftFactor: (option, value) => {
    if (typeof value === "number" && value >= 0 && value < 1) return value;
    throw new LockOptionsError({ option, value, expected: "a number from 0 to less than 1" });
  },
  autoExtend: oneOf([true, false]),
  maxHoldMs: milliseconds({ min: 1 }),
  mode: oneOf(["exclusive", "shared"]),
  signal: requireMethods(["addEventListener", "removeEventListener"]),
  logger: requireMethods(["debug", "info", "warn", "error"]),
  clock: requireMethods(["now", "setTimer"]),
} satisfies Record<string, Check>;

/** One pass over what was given: an option that is misspelt is refused, never ignored. */
function check<T extends object>(options: T, names: readonly string[]): T {
  if (options === NO_OPTIONS) return options;
  if (typeof options !== "object" || options === null) {
    throw new LockOptionsError({ option: "options", value: options, expected: `an object of ${names.join(", ")}` });
  }
  const checked: Record<string, unknown> = {};
  for (const option of Object.keys(options)) {
    const value = (options as Record<string, unknown>)[option];
    if (value === undefined) continue;
    if (!names.includes(option)) {
      throw new LockOptionsError({ option, value, expected: `left out: the options here are ${names.join(", ")}` });
    }
    checked[option] = (CHECKS as Record<string, Check>)[option]?.(option, value);
  }
  return checked as T;
}

/** Whole milliseconds, fractions rounded up, at most {@link MAX_TTL_MS}. */
function milliseconds({ min }: { readonly min: number }): Check {
  return (option, value) => {
    const rounded = typeof value === "number" ? Math.ceil(value) : Number.NaN;
    if (rounded >= min && rounded <= MAX_TTL_MS) return rounded as typeof value;
    throw new LockOptionsError({ option, value, expected: `milliseconds from ${min} to ${MAX_TTL_MS} (ten years)` });
  };
}

function oneOf(values: readonly unknown[]): Check {
  return (option, value) => {
    if (values.includes(value)) return value;
    throw new LockOptionsError({ option, value, expected: values.join(" or ") });
  };
}

function requireMethods(methods: readonly string[]): Check {
  return (option, value) => {
    const owner = Object(value) as Record<string, unknown>;
    if (methods.every((method) => typeof owner[method] === "function")) return value;
    throw new LockOptionsError({ option, value, expected: `an object with the methods ${methods.join(", ")}` });
  };
}
