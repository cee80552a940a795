import { isIPv4 } from "node:net";
import type { LimitObserver } from "./events.ts";
import { RateLimit, type RateLimitOptions, WINDOW_MS } from "./rate-limit.ts";

/** What {@link FailedAuthentication} goes by: the limit is how many credentials an address may be wrong with in a minute. */
export type FailedAuthenticationOptions = Omit<RateLimitOptions, "name"> & { readonly observe: LimitObserver };

/**
 * Limits addresses by the different credentials that were refused to them. A device that repeats its one wrong token
 * counts once, so that it does not shut out all others behind the same router; whoever tries many is shut out.
 */
export class FailedAuthentication {
  readonly #limit: RateLimit;
  readonly #nowMs: () => number;
  #window = 0;
  #known = new Set<string>();
  /** Whether any address has failed in this window: nearly always none has, and then nothing else is looked at. */
  #any = false;

  constructor(options: FailedAuthenticationOptions) {
    this.#limit = new RateLimit({ ...options, name: "failed_authentication" });
    this.#nowMs = options.nowMs ?? Date.now;
  }

  /** Counts a credential that was refused. */
  failed(address: string, credential: string): void {
    const window = Math.floor(this.#nowMs() / WINDOW_MS);
    if (window !== this.#window) {
      this.#window = window;
      this.#known = new Set();
    }
    const network = networkOf(address);
    const known = `${network} ${credential}`;
    // Of an address that is shut out nothing more is kept.
    if (this.#known.has(known) || this.#limit.refusal(network) !== undefined) return;
    this.#known.add(known);
    this.#any = true;
    this.#limit.take(network);
  }

  /** Returns for how many seconds the address is shut out; `undefined`: it is not. */
  refusal(addressOf: () => string | undefined): number | undefined {
    if (!this.#any) return undefined;
    const address = addressOf();
    return address === undefined ? undefined : this.#limit.refusal(networkOf(address));
  }
}

/** What one customer has: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (isIPv4(address)) return address;
  const [head = "", tail] = (address.split("%", 1)[0] ?? "").toLowerCase().split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array<string>(zeros).fill("0"), ...after].slice(0, 4);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, "")).join(":")}::/64`;
}
