/** When a delay counts as one that stands, and when it is over. */
export interface StandingDelayOptions {
  /** From here on it is too long. */
  readonly limitMs: number;
  /** For how long it must have been too long. A burst that is worked off in that time is none. */
  readonly enterMs: number;
  /** For how long it must have been below half the limit to be over. */
  readonly leaveMs: number;
}

/**
 * Tells a delay that stands from a burst: as in CoDel (RFC 8289), what counts is not how long the delay is but for how
 * long it has not been short. It ends at half the limit and on evidence only, so that it does not come and go.
 */
export class StandingDelay {
  readonly #options: StandingDelayOptions;
  #longSinceMs: number | undefined;
  #shortSinceMs: number | undefined;
  #stands = false;

  constructor(options: StandingDelayOptions) {
    this.#options = options;
  }

  get stands(): boolean {
    return this.#stands;
  }

  /** Takes the least delay since the last sample; `undefined`: nothing is known about it. */
  sample(delayMs: number | undefined, nowMs: number): void {
    if (this.#stands) this.#leave(delayMs, nowMs);
    else this.#enter(delayMs, nowMs);
  }

  #enter(delayMs: number | undefined, nowMs: number): void {
    const { limitMs, enterMs } = this.#options;
    if (delayMs === undefined || delayMs < limitMs) {
      this.#longSinceMs = undefined;
      return;
    }
    this.#longSinceMs ??= nowMs;
    if (nowMs - this.#longSinceMs < enterMs) return;
    this.#stands = true;
    this.#longSinceMs = undefined;
  }

  #leave(delayMs: number | undefined, nowMs: number): void {
    const { limitMs, leaveMs } = this.#options;
    if (delayMs === undefined) return;
    if (delayMs >= limitMs / 2) {
      this.#shortSinceMs = undefined;
      return;
    }
    this.#shortSinceMs ??= nowMs;
    if (nowMs - this.#shortSinceMs < leaveMs) return;
    this.#stands = false;
    this.#shortSinceMs = undefined;
  }
}
