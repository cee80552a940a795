import type {
  AcquireRequest,
  AcquireResult,
  OwnedKey,
  PromoteRequest,
  PromoteResult,
  ReleaseOutcome,
} from "@ota/lock-core";
import { FullStore, type HeldLock } from "./full-store.ts";
import type { FullMistake } from "./mistake.ts";

const STARTED_AT = Date.now();
const HOUR_MS = 3_600_000;

/** Counts the tokens of the store that takes them from its own clock. */
let nthToken = 0n;

/** A store that counts from one, and so is wrong as soon as it loses its counter. */
class CountingStore extends FullStore {
  protected override next(last: bigint): bigint {
    return last + 1n;
  }
}

/** Mistakes about fencing tokens. */
export const fencingMistakes: readonly FullMistake[] = [
  {
    name: "all tokens are the same",
    Store: class extends FullStore {
      protected override token(): bigint {
        return 1n;
      }
    },
    caughtBy: [
      "each-writer-gets-a-larger-token",
      "token-grows-after-expiry",
      "token-only-when-asked-for",
      "token-outlives-the-counter",
      "token-grows-by-any-wall-clock",
      "reader-gets-the-current-token",
      "promotion-mints-a-token",
      "demotion-keeps-the-tokens-in-order",
      "token-grows-after-forced-release",
      "write-with-an-older-token-is-refused",
    ],
  },
  {
    name: "a token is never given",
    Store: class extends FullStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        return super.acquire({ ...request, fencing: false });
      }
    },
    caughtBy: [
      "each-writer-gets-a-larger-token",
      "token-grows-after-expiry",
      "holder-keeps-its-token",
      "token-only-when-asked-for",
      "token-outlives-the-counter",
      "token-grows-by-any-wall-clock",
      "reader-gets-the-current-token",
      "promotion-mints-a-token",
      "demotion-keeps-the-tokens-in-order",
      "token-grows-after-forced-release",
      "write-with-an-older-token-is-refused",
    ],
  },
  {
    name: "a token is given unasked",
    Store: class extends FullStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        return super.acquire({ ...request, fencing: true });
      }
    },
    caughtBy: ["token-only-when-asked-for"],
  },
  {
    name: "tokens are too large for the columns of databases",
    Store: class extends FullStore {
      protected override next(last: bigint): bigint {
        return super.next(last) + 2n ** 64n;
      }
    },
    caughtBy: [
      "each-writer-gets-a-larger-token",
      "token-grows-after-expiry",
      "token-only-when-asked-for",
      "token-outlives-the-counter",
      "token-grows-by-any-wall-clock",
      "reader-gets-the-current-token",
      "promotion-mints-a-token",
      "demotion-keeps-the-tokens-in-order",
      "token-grows-after-forced-release",
    ],
  },
  {
    name: "tokens follow the clock of the client",
    Store: class extends FullStore {
      protected override next(): bigint {
        nthToken += 1n;
        return BigInt(Math.round((Date.now() - STARTED_AT) / HOUR_MS) + 2) * 1_000_000_000n + nthToken;
      }
    },
    caughtBy: ["token-grows-by-any-wall-clock"],
  },
  {
    name: "a lost counter starts at one",
    Store: CountingStore,
    caughtBy: ["token-outlives-the-counter"],
  },
  {
    name: "the counter goes with a lease that lapsed",
    Store: class extends CountingStore {
      protected override isLapsed(endsAt: number, lock: HeldLock): boolean {
        const isLapsed = super.isLapsed(endsAt, lock);
        if (isLapsed) this.backend.tokens.clear();
        return isLapsed;
      }
    },
    caughtBy: ["token-grows-after-expiry", "token-outlives-the-counter", "write-with-an-older-token-is-refused"],
  },
  {
    name: "the counter goes with the release",
    Store: class extends CountingStore {
      override async release(request: OwnedKey): Promise<ReleaseOutcome> {
        const outcome = await super.release(request);
        if (outcome === "released") this.backend.tokens.delete(request.key);
        return outcome;
      }
    },
    caughtBy: [
      "each-writer-gets-a-larger-token",
      "token-only-when-asked-for",
      "token-outlives-the-counter",
      "token-grows-by-any-wall-clock",
      "reader-gets-the-current-token",
      "demotion-keeps-the-tokens-in-order",
    ],
  },
  {
    name: "the counter goes with a forced release",
    Store: class extends CountingStore {
      override async forceRelease(request: OwnedKey): Promise<ReleaseOutcome> {
        this.backend.tokens.delete(request.key);
        return super.forceRelease(request);
      }
    },
    caughtBy: ["token-outlives-the-counter", "token-grows-after-forced-release"],
  },
  {
    name: "a token is used again by the writer after a lapsed one",
    Store: class extends FullStore {
      #afterLapse = false;

      protected override isLapsed(endsAt: number, lock: HeldLock): boolean {
        this.#afterLapse = super.isLapsed(endsAt, lock);
        return this.#afterLapse;
      }

      protected override token(owned: OwnedKey, minting: boolean): bigint {
        return super.token(owned, minting && !this.#afterLapse);
      }
    },
    caughtBy: ["token-grows-after-expiry", "write-with-an-older-token-is-refused"],
  },
  {
    name: "a second acquire by the holder mints a token",
    Store: class extends FullStore {
      protected override token(owned: OwnedKey): bigint {
        return super.token(owned, true);
      }
    },
    caughtBy: ["holder-keeps-its-token", "promotion-mints-a-token"],
  },
  {
    name: "a promotion keeps the reader's token",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const result = await super.promote({ ...request, fencing: false });
        return result.outcome === "promoted" ? { ...result, fencingToken: this.token(request, false) } : result;
      }
    },
    caughtBy: ["promotion-mints-a-token"],
  },
  {
    name: "a second promotion mints a token",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        const result = await super.promote({ ...request, fencing: false });
        return result.outcome === "promoted" ? { ...result, fencingToken: this.token(request, true) } : result;
      }
    },
    caughtBy: ["promotion-mints-a-token"],
  },
  {
    name: "a promotion gives no token",
    Store: class extends FullStore {
      override async promote(request: PromoteRequest): Promise<PromoteResult> {
        return super.promote({ ...request, fencing: false });
      }
    },
    caughtBy: ["promotion-mints-a-token"],
  },
  {
    name: "a reader gets the token before the last writer's",
    Store: class extends FullStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const result = await super.acquire(request);
        if (request.mode !== "shared" || result.outcome === "contended" || !result.fencingToken) return result;
        return { ...result, fencingToken: result.fencingToken - 1n };
      }
    },
    caughtBy: ["reader-gets-the-current-token", "demotion-keeps-the-tokens-in-order"],
  },
  {
    name: "a reader gets the next writer's token",
    Store: class extends FullStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        const result = await super.acquire(request);
        if (request.mode !== "shared" || result.outcome === "contended" || !result.fencingToken) return result;
        return { ...result, fencingToken: result.fencingToken + 1n };
      }
    },
    caughtBy: ["reader-gets-the-current-token", "promotion-mints-a-token", "demotion-keeps-the-tokens-in-order"],
  },
];
