import type { LimitName, LimitObserver } from "./events.ts";
import type { SharedCounts } from "./shared-counts.ts";

/** What {@link RateLimit} goes by. */
export interface RateLimitOptions {
  readonly name: LimitName;
  /** How many a window may have. */
  readonly limit: number;
  /** Where processes add up their counts; `undefined`: each counts for itself. */
  readonly shared: SharedCounts | undefined;
  readonly observe: LimitObserver;
  /** @default Date.now */
  readonly nowMs?: () => number;
}

/** Windows begin with the minute by every process's clock: a second's difference between clocks is no matter here. */
export const WINDOW_MS = 60_000;

/**
 * The part of a limit up to which a process keeps a count to itself. What nearly everybody stays below costs no message;
 * what several processes each keep to themselves is allowed on top of the limit.
 */
const OWN_SHARE = 0.1;

/** Bounds the memory against keys that are made up. Keys beyond are not counted until the window ends. */
const MAX_KEYS = 1_000_000;

/** How long nothing is shared after a fault. */
const FAULT_REST_MS = 1000;

/** What the processes together have counted for a key. */
interface Together {
  /** How much of the own count the others know. */
  told: number;
  /** What the others had counted when that was told. */
  others: number;
  underWay: boolean;
}

/**
 * Counts by key in windows of a minute. Nobody waits: a count that has become worth sharing is sent beside the request,
 * and what the others had counted is known to the next. With the shared counts away each process limits by its own.
 */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #ownShare: number;
  readonly #nowMs: () => number;
  #window = 0;
  #counts = new Map<string, number>();
  #together = new Map<string, Together>();
  #restUntilMs = 0;

  constructor(options: RateLimitOptions) {
    this.#options = options;
    this.#ownShare = Math.max(1, Math.floor(options.limit * OWN_SHARE));
    this.#nowMs = options.nowMs ?? Date.now;
  }

  /** Counts one. Returns the seconds until the window ends where it is one too many, else `undefined`. */
  take(key: string): number | undefined {
    const nowMs = this.#turn();
    const own = (this.#counts.get(key) ?? 0) + 1;
    if (own > 1 || this.#counts.size < MAX_KEYS) this.#counts.set(key, own);
    if (!this.#exceeds(key, own)) {
      if (own > this.#ownShare) this.#share(key, { own, nowMs });
      return undefined;
    }
    return this.#secondsLeft(nowMs);
  }

  /** As {@link take}, for one that would come next, without counting it. */
  refusal(key: string): number | undefined {
    const nowMs = this.#turn();
    const own = this.#counts.get(key);
    return own !== undefined && this.#exceeds(key, own + 1) ? this.#secondsLeft(nowMs) : undefined;
  }

  /** Begins a new window where it is time. */
  #turn(): number {
    const nowMs = this.#nowMs();
    const window = Math.floor(nowMs / WINDOW_MS);
    if (window !== this.#window) {
      this.#window = window;
      this.#counts = new Map();
      this.#together = new Map();
    }
    return nowMs;
  }

  #exceeds(key: string, own: number): boolean {
    return own + (this.#together.get(key)?.others ?? 0) > this.#options.limit;
  }

  #secondsLeft(nowMs: number): number {
    return Math.max(1, Math.ceil(((this.#window + 1) * WINDOW_MS - nowMs) / 1000));
  }

  #share(key: string, { own, nowMs }: { readonly own: number; readonly nowMs: number }): void {
    const { shared, name, observe } = this.#options;
    if (shared === undefined || nowMs < this.#restUntilMs) return;
    let together = this.#together.get(key);
    if (together === undefined) {
      together = { told: 0, others: 0, underWay: false };
      this.#together.set(key, together);
    }
    if (together.underWay) return;
    together.underWay = true;
    const mine = together;
    shared.add(`${name}:${this.#window}:${key}`, own - mine.told).then(
      (total) => {
        mine.underWay = false;
        mine.told = own;
        mine.others = Math.max(0, total - own);
      },
      () => {
        mine.underWay = false;
        this.#restUntilMs = this.#nowMs() + FAULT_REST_MS;
        observe({ kind: "not_shared" });
      },
    );
  }
}
