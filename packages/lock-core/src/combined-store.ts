import type { CheckedStore } from "./checked-store.ts";
import { type Clock, systemClock } from "./clock.ts";
import { CombinedPart } from "./combined-part.ts";
import {
  isStoreFault,
  type LockError,
  LockOptionsError,
  LockQuorumError,
  type StoreOperation,
  type StoreVote,
} from "./errors.ts";
import { type CombinedStoreOptions, checkCombinedOptions, checkStore } from "./options.ts";
import { isOwnerToken } from "./owner-token.ts";
import { byQuorum, FAULT, type Poll, poll, type Tally } from "./quorum.ts";
import type {
  AcquireRequest,
  AcquireResult,
  ExtendOutcome,
  ExtendRequest,
  LockStore,
  OwnedKey,
  ReleaseOutcome,
  StoreReach,
} from "./store.ts";
import type {
  DemoteOutcome,
  DriftingStore,
  PromoteRequest,
  PromoteResult,
  SharedLockStore,
} from "./store-capabilities.ts";

/**
 * Several independent stores as one: a lease is granted when enough of them grant it, so that locks go on while a minority
 * fails. The stores must not share a backend, which cannot be told here, and should fail independently.
 *
 * All stores are asked at once with one and the same owner token, as symfony/lock's CombinedStore does (the idea is that
 * of Redlock), and the answer is given as soon as it is decided. Every store is then told to release what it may have
 * granted in vain. A store that fails or does not answer within `storeTimeoutMs` has not agreed; when so many fail that
 * the others cannot decide, that is a `LockQuorumError`.
 *
 * It has shared locks if all its stores have them, and no fencing tokens: the numbers of independent stores are in no
 * order. It cannot be inspected; its stores can, one by one.
 *
 * @throws LockQuorumError from every operation.
 * @throws LockKeyConflictError, LockOptionsError from every operation, when that is what all failed stores say.
 */
export class CombinedStore implements SharedLockStore, DriftingStore {
  readonly name: string = "combined";
  readonly reach: StoreReach;
  readonly #parts: readonly CombinedPart[];
  readonly #sharesLocks: boolean;
  readonly #quorum: number;
  readonly #timeoutMs: number;
  readonly #driftFactor: number;
  readonly #clock: Clock;

  /** @throws LockOptionsError for no stores, for one that is given twice, and for options that cannot be honoured. */
  constructor(stores: readonly LockStore[], options: CombinedStoreOptions = {}) {
    const { strategy, storeTimeoutMs, driftFactor, clock } = checkCombinedOptions(options);
    this.#parts = checkStores(stores).map((store) => new CombinedPart(store));
    this.reach = stores.some(({ reach }) => reach === "process") ? "process" : "shared";
    this.#quorum = strategy === "unanimous" ? stores.length : Math.floor(stores.length / 2) + 1;
    this.#timeoutMs = storeTimeoutMs ?? DEFAULT_STORE_TIMEOUT_MS;
    this.#driftFactor = driftFactor ?? DEFAULT_DRIFT_FACTOR;
    this.#clock = clock ?? systemClock;
    this.#sharesLocks = this.#parts.every(({ store }) => store.sharesLocks);
    // A capability is told by its methods: this store must not seem to have shared locks when it has none.
    if (!this.#sharesLocks) Object.assign(this, { promote: undefined, demote: undefined });
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { key, owner, ttlMs } = request;
    const mode = this.#sharesLocks ? request.mode : "exclusive";
    const { decision, votes } = await this.#poll("acquire", request, {
      ask: async (store) => (await store.acquire({ key, owner, ttlMs, mode })).outcome,
      decide: byQuorum({ quorum: this.#quorum, yes: "granted", first: FAULT, else: "contended" }),
    });
    if (decision === "granted") return { outcome: "granted" };
    await this.#giveBack(request, votes);
    if (decision === FAULT) throw this.#fault("acquire", request, votes);
    return { outcome: "contended" };
  }

  async extend(request: ExtendRequest): Promise<ExtendOutcome> {
    const result = await this.#poll("extend", request, {
      ask: (store) => store.extend(request),
      decide: byQuorum({ quorum: this.#quorum, yes: "extended", first: "lost", else: FAULT }),
    });
    if (result.decision === "lost") await this.#giveBack(request, result.votes);
    return this.#answer("extend", request, result);
  }

  async release(request: OwnedKey): Promise<ReleaseOutcome> {
    const result = await this.#poll("release", request, {
      ask: (store) => store.release(request),
      isAlwaysAsked: true,
      decide: byQuorum({ quorum: this.#quorum, yes: "released", first: "not-held", else: FAULT }),
    });
    return this.#answer("release", request, result);
  }

  async isHeld(request: OwnedKey): Promise<boolean> {
    const result = await this.#poll("isHeld", request, {
      ask: async (store) => ((await store.isHeld(request)) ? "held" : "free"),
      decide: byQuorum({ quorum: this.#quorum, yes: "held", first: "free", else: FAULT }),
    });
    return this.#answer("isHeld", request, result) === "held";
  }

  /** When it is refused, the stores that had promoted the lease are told to demote it again. */
  async promote(request: PromoteRequest): Promise<PromoteResult> {
    const { key, owner, ttlMs } = request;
    const result = await this.#poll("promote", request, {
      ask: async (store) => (await store.promote({ key, owner, ttlMs })).outcome,
      decide: (tally) => decidePromotion(tally, this.#quorum),
    });
    if (result.decision === "lost") await this.#giveBack(request, result.votes);
    if (result.decision === "contended") await this.#undoPromotion(request, result.votes);
    return { outcome: this.#answer("promote", request, result) };
  }

  async demote(request: ExtendRequest): Promise<DemoteOutcome> {
    const result = await this.#poll("demote", request, {
      ask: (store) => store.demote(request),
      decide: byQuorum({ quorum: this.#quorum, yes: "demoted", first: "lost", else: FAULT }),
    });
    if (result.decision === "lost") await this.#giveBack(request, result.votes);
    return this.#answer("demote", request, result);
  }

  validityMs(ttlMs: number): number {
    const ofStores = this.#parts.map(({ store }) => store.validityMs(ttlMs));
    return Math.max(0, Math.min(...ofStores) - ttlMs * this.#driftFactor - ROUNDING_MS);
  }

  async #poll<Decision>(operation: StoreOperation, owned: OwnedKey, asked: Asked<Decision>): Promise<Poll<Decision>> {
    checkOwner(owned);
    const { ask, decide, parts = this.#parts, isAlwaysAsked = false } = asked;
    return poll(parts, {
      operation,
      owned,
      timeoutMs: this.#timeoutMs,
      clock: this.#clock,
      decide,
      ask: (part, isOver) =>
        part.inTurn(owned, (store) => (isOver() && !isAlwaysAsked ? Promise.resolve("not asked") : ask(store))),
    });
  }

  /**
   * Releases what the stores may have granted, also those that have failed or whose answers are still on their way. Only
   * those that are known to have it are waited for. What cannot be released ends with its TTL.
   */
  async #giveBack(owned: OwnedKey, votes: readonly StoreVote[]): Promise<void> {
    const parts = this.#parts.filter((_, index) => HOLDING.has(votes[index]?.outcome));
    for (const [index, part] of this.#parts.entries()) {
      // A failure is told by an event of the store's own.
      if (votes[index]?.outcome === undefined) part.inTurn(owned, (store) => store.release(owned)).catch(() => {});
    }
    if (parts.length === 0) return;
    await this.#poll("release", owned, {
      parts,
      ask: (store) => store.release(owned),
      isAlwaysAsked: true,
      decide: whenAllVoted,
    });
  }

  async #undoPromotion(request: PromoteRequest, votes: readonly StoreVote[]): Promise<void> {
    const parts = this.#parts.filter((_, index) => votes[index]?.outcome === "promoted");
    if (parts.length === 0) return;
    const undone = await this.#poll("demote", request, {
      parts,
      ask: (store) => store.demote(request),
      isAlwaysAsked: true,
      decide: whenAllVoted,
    });
    // Some keep it as an exclusive lease: its holder must know that its mode is in doubt.
    if (undone.votes.some(({ error }) => error !== undefined)) throw this.#fault("promote", request, undone.votes);
  }

  #answer<Decision>(
    operation: StoreOperation,
    owned: OwnedKey,
    { decision, votes }: Poll<Decision>,
  ): Exclude<Decision, typeof FAULT> {
    if (decision === FAULT) throw this.#fault(operation, owned, votes);
    return decision as Exclude<Decision, typeof FAULT>;
  }

  #fault(operation: StoreOperation, { key }: OwnedKey, votes: readonly StoreVote[]): LockError {
    const errors = votes.flatMap(({ error }) => error ?? []);
    const [cause] = errors;
    // Foreign data under the key, and keys that cannot be, are no matter of failing stores.
    if (cause !== undefined && !isStoreFault(cause) && errors.every(({ code }) => code === cause.code)) return cause;
    return new LockQuorumError({ store: this.name, operation, key, quorum: this.#quorum, votes, cause });
  }
}

/** What is asked of one store each. */
interface Asked<Decision> {
  readonly ask: (store: CheckedStore) => Promise<string>;
  readonly decide: (tally: Tally) => Decision | undefined;
  /** @default all */
  readonly parts?: readonly CombinedPart[];
  /**
   * Whether a store that is busy is asked even when the others have decided meanwhile.
   * @default false
   */
  readonly isAlwaysAsked?: boolean;
}

/** Half of the default command timeout of RedisStore: what waits for its own store's timeout is no combination. */
const DEFAULT_STORE_TIMEOUT_MS = 500;

/** As Redlock has it: clocks of computers run apart by far less. */
const DEFAULT_DRIFT_FACTOR = 0.01;

/** Stores round the ends of leases to milliseconds, and so do timers. */
const ROUNDING_MS = 2;

/** The answers of stores that have the lease. */
const HOLDING: ReadonlySet<string | undefined> = new Set(["granted", "extended", "promoted", "demoted"]);

function checkStores(stores: readonly LockStore[]): readonly LockStore[] {
  const expected = "a list of one or more lock stores, each once";
  if (!Array.isArray(stores) || stores.length === 0) {
    throw new LockOptionsError({ option: "stores", value: Array.isArray(stores) ? "[]" : stores, expected });
  }
  for (const store of stores) checkStore(store);
  if (new Set(stores).size === stores.length) return stores;
  throw new LockOptionsError({ option: "stores", value: "a list with a store that is in it twice", expected });
}

/** Some stores keep names for themselves: as an owner, none of them may be told apart by which store answers first. */
function checkOwner({ key, owner }: OwnedKey): void {
  if (isOwnerToken(owner)) return;
  const expected = "an owner token: a non-empty string of well-formed Unicode that no store keeps for itself";
  throw new LockOptionsError({ option: "owner", value: typeof owner, expected, key });
}

/** A lease is promoted by a quorum. Otherwise all are heard, since one more may still have promoted it. */
function decidePromotion({ total, count, faults, pending }: Tally, quorum: number): PromotionDecision | undefined {
  if (count("promoted") >= quorum) return "promoted";
  if (pending > 0) return undefined;
  if (total - count("lost") < quorum) return "lost";
  return count("contended") > 0 && total - faults >= quorum ? "contended" : FAULT;
}

type PromotionDecision = PromoteResult["outcome"] | typeof FAULT;

function whenAllVoted({ pending }: Tally): true | undefined {
  return pending === 0 ? true : undefined;
}
