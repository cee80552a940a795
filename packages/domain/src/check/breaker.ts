/**
 * Remembers that something failed a moment ago, so that a hung server costs one timeout per period and not one per
 * caller. After the period one caller at a time tries again, until one succeeds.
 */
export class Breaker {
  readonly #periodMs: number;
  readonly #onChange: (state: "open" | "closed") => void;
  /** On the monotonic clock; `undefined` while closed. */
  #retryAt: number | undefined;
  #probing = false;

  constructor(options: { readonly periodMs: number; readonly onChange: (state: "open" | "closed") => void }) {
    this.#periodMs = options.periodMs;
    this.#onChange = options.onChange;
  }

  get isOpen(): boolean {
    return this.#retryAt !== undefined;
  }

  /** Whether the caller may try. Whoever may must then say `succeeded` or `failed`. */
  mayTry(): boolean {
    if (this.#retryAt === undefined) return true;
    if (this.#probing || performance.now() < this.#retryAt) return false;
    this.#probing = true;
    return true;
  }

  succeeded(): void {
    this.#probing = false;
    if (this.#retryAt === undefined) return;
    this.#retryAt = undefined;
    this.#onChange("closed");
  }

  failed(): void {
    const wasOpen = this.isOpen;
    this.#probing = false;
    this.#retryAt = performance.now() + this.#periodMs;
    if (!wasOpen) this.#onChange("open");
  }
}
