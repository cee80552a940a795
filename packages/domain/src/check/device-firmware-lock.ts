import { type Lease, type Lock, type LockFactory, LockTimeoutError, type Logger } from "@ota/lock-core";
import { ServiceBusyError } from "../errors.ts";
import { Breaker } from "./breaker.ts";
import type { CheckObserver } from "./events.ts";
import { SingleFlight } from "./single-flight.ts";

/** How the lock of the check behaves. */
export interface DeviceFirmwareLockSettings {
  /** Put before every key, so that several installations can share a lock store. @default "" */
  readonly lockKeyPrefix?: string;
  /** How long the store keeps a lease whose holder has died. @default 10_000 */
  readonly lockTtlMs?: number;
  /** How often the store is asked before the check is answered SERVICE_BUSY. @default 5 */
  readonly lockMaxAttempts?: number;
  /** The longest pause between two of them. @default 100 */
  readonly lockRetryIntervalMs?: number;
  /**
   * What a check does while the lock store is at fault: `proceed` without the lock, since the database alone keeps
   * records unique; or answer SERVICE_BUSY. @default "proceed"
   */
  readonly lockOutage?: "proceed" | "busy";
  /** How long the store is left alone after a fault. @default 1_000 */
  readonly lockBreakerMs?: number;
}

/** The lock that damps contention between checks of one device for one firmware. It guarantees nothing: the database does. */
export class DeviceFirmwareLock<T> {
  readonly #locks: LockFactory;
  readonly #logger: Logger;
  readonly #observe: CheckObserver;
  readonly #settings: Required<DeviceFirmwareLockSettings>;
  readonly #flights = new SingleFlight<T>();
  readonly #breaker: Breaker;
  readonly #releasing = new Set<Promise<void>>();

  constructor(options: {
    readonly locks: LockFactory;
    readonly logger: Logger;
    readonly observe: CheckObserver;
    readonly settings: DeviceFirmwareLockSettings;
  }) {
    this.#locks = options.locks;
    this.#logger = options.logger;
    this.#observe = options.observe;
    this.#settings = { ...DEFAULTS, ...options.settings };
    this.#breaker = new Breaker({
      periodMs: this.#settings.lockBreakerMs,
      onChange: (state) => this.#breakerChanged(state),
    });
    // A setting that no lock accepts shows now, not at the first device's check.
    this.#lock(this.#key("probe"));
  }

  /**
   * Runs the critical section while no other check of this device for this firmware does, as far as the lock store can
   * tell. Callers within this process share one run; see {@link SingleFlight}.
   *
   * @throws ServiceBusyError when the lock was held by somebody else all the time, or its store is at fault and
   * `lockOutage` is `busy`.
   */
  withDeviceFirmwareLock(deviceId: bigint, firmwareId: bigint, criticalSection: () => Promise<T>): Promise<T> {
    const key = this.#key(`${deviceId}:${firmwareId}`);
    return this.#flights.run(key, async () => {
      const lease = await this.#acquireOrFail(key);
      try {
        return await criticalSection();
      } finally {
        if (lease !== undefined) this.#releaseBehind(lease, key);
      }
    });
  }

  /** Waits for the releases that are under way. */
  async released(): Promise<void> {
    await Promise.all(this.#releasing);
  }

  /**
   * Whether the lock store answers, by the last that is known. After a fault, asking makes the next attempt as well, so
   * that a process which gets no checks because it says `degraded` finds out when the store is back.
   */
  health(): "up" | "degraded" {
    if (!this.#breaker.isOpen) return "up";
    if (this.#breaker.mayTry()) void this.#probe();
    return "degraded";
  }

  #key(pair: string): string {
    return `${this.#settings.lockKeyPrefix}ota:check:${pair}`;
  }

  #lock(key: string): Lock {
    const { lockTtlMs, lockMaxAttempts, lockRetryIntervalMs } = this.#settings;
    return this.#locks.createLock(key, {
      ttlMs: lockTtlMs,
      maxAttempts: lockMaxAttempts,
      retryDelayMs: lockRetryIntervalMs,
    });
  }

  /** A lease, or `undefined` where the check goes on without. */
  async #acquireOrFail(key: string): Promise<Lease | undefined> {
    if (!this.#breaker.mayTry()) {
      this.#observe({ kind: "lock_skipped" });
      return this.#withoutLock();
    }
    const startedAt = performance.now();
    const observe = (outcome: "acquired" | "contended" | "fault") =>
      this.#observe({ kind: "lock", outcome, waitedMs: performance.now() - startedAt });
    try {
      const lease = await this.#lock(key).acquire();
      this.#breaker.succeeded();
      observe("acquired");
      return lease;
    } catch (error) {
      if (error instanceof LockTimeoutError) {
        this.#breaker.succeeded();
        observe("contended");
        const { attempts, waitedMs } = error;
        this.#logger.warn({ key, attempts, waitedMs }, "A check found its lock held all the time: SERVICE_BUSY.");
        throw busy("Another check of this device is under way.", error);
      }
      this.#breaker.failed();
      observe("fault");
      this.#logger.warn({ key, err: error, policy: this.#settings.lockOutage }, "The lock store is at fault.");
      return this.#withoutLock(error);
    }
  }

  #withoutLock(cause?: unknown): undefined {
    if (this.#settings.lockOutage === "busy") throw busy("The lock store is not available.", cause);
    return undefined;
  }

  /** The answer does not wait for the release: what the lock has guarded is done, and the store may be slow. */
  #releaseBehind(lease: Lease, key: string): void {
    const releasing = this.#releaseQuietly(lease, key).finally(() => this.#releasing.delete(releasing));
    this.#releasing.add(releasing);
  }

  /** A release that fails never touches the check's own result: the lease then ends with its TTL. */
  async #releaseQuietly(lease: Lease, key: string): Promise<void> {
    try {
      await lease.release();
    } catch (err) {
      this.#breaker.failed();
      this.#logger.warn({ key, err }, "A check's lock could not be released; it ends with its TTL.");
    }
  }

  async #probe(): Promise<void> {
    const key = this.#key("probe");
    try {
      const lease = await this.#lock(key).tryAcquire();
      this.#breaker.succeeded();
      if (lease !== undefined) await this.#releaseQuietly(lease, key);
    } catch (err) {
      this.#breaker.failed();
      this.#logger.debug({ key, err }, "The lock store is still at fault.");
    }
  }

  #breakerChanged(state: "open" | "closed"): void {
    this.#observe({ kind: "breaker", state });
    if (state === "closed") this.#logger.info({}, "The lock store answers again.");
  }
}

const DEFAULTS: Required<DeviceFirmwareLockSettings> = {
  lockKeyPrefix: "",
  lockTtlMs: 10_000,
  lockMaxAttempts: 5,
  lockRetryIntervalMs: 100,
  lockOutage: "proceed",
  lockBreakerMs: 1_000,
};

/** Spread over a few seconds, so that those who are sent away do not come back together. */
function busy(message: string, cause: unknown): ServiceBusyError {
  return new ServiceBusyError(`${message} Ask again.`, {
    retryAfterSeconds: 1 + Math.floor(Math.random() * 5),
    ...(cause === undefined ? {} : { cause }),
  });
}
