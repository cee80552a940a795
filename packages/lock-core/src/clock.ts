/**
 * Where the locks get their time from. Inject one to test code that waits or that outlives a lease, such as the
 * `ManualClock` of `@ota/lock-core/testing`.
 */
export interface Clock {
  /**
   * Milliseconds since some fixed moment, possibly fractional, on a clock that never goes back and never jumps: not the
   * time of day.
   */
  now(): number;

  /**
   * Calls `callback` once, `delayMs` or more from now, unless the returned function cancels it first. The locks are right
   * with a timer that fires early as well.
   */
  setTimer(delayMs: number, callback: () => void, options?: TimerOptions): CancelTimer;
}

export interface TimerOptions {
  /**
   * Whether the process may end while the timer is pending, as nobody waits for it.
   * @default false
   */
  readonly background?: boolean | undefined;
}

/** Cancels a timer; harmless when it has fired or was cancelled already. */
export type CancelTimer = () => void;

/** The longest delay that Node's timers keep; anything above would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/**
 * Node's monotonic clock and timers. A timer keeps the process alive until it has fired, unless it is a background one.
 *
 * The monotonic clock stands still while the whole machine is suspended, so a laptop or a virtual machine that slept
 * believes in its leases for longer than the store does.
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimer(delayMs, callback, options) {
    const timer = setTimeout(callback, Math.min(delayMs, MAX_TIMER_MS));
    if (options?.background === true) timer.unref();
    return () => clearTimeout(timer);
  },
};
