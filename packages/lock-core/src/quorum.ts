import type { Clock } from "./clock.ts";
import type { CombinedPart } from "./combined-part.ts";
import { LockStoreError, type StoreOperation, type StoreVote } from "./errors.ts";
import type { OwnedKey } from "./store.ts";

/** How the votes stand. */
export interface Tally {
  readonly total: number;
  /** How many stores have given this answer. */
  count(outcome: string): number;
  readonly faults: number;
  readonly pending: number;
}

/** One question to all stores of a combination. */
export interface Question<Decision> {
  readonly operation: StoreOperation;
  readonly owned: OwnedKey;
  /** Asks one store. `isOver` says that the question is decided, so that nothing needs to be sent any more. */
  readonly ask: (part: CombinedPart, isOver: () => boolean) => Promise<string>;
  /** Called after each vote; must decide when none is pending. */
  readonly decide: (tally: Tally) => Decision | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export interface Poll<Decision> {
  readonly decision: Decision;
  /** In the order of the stores. A store whose answer was not needed has neither an outcome nor an error. */
  readonly votes: readonly StoreVote[];
}

/**
 * Asks all stores at once and decides as soon as the votes that are in allow it. A store that throws, or that has not
 * answered after `timeoutMs`, has voted by a fault. It never rejects and always ends.
 */
export function poll<Decision>(parts: readonly CombinedPart[], question: Question<Decision>): Promise<Poll<Decision>> {
  const { operation, owned, timeoutMs, clock } = question;
  return new Promise((resolve) => {
    const votes: StoreVote[] = parts.map(({ store }) => ({ store: store.name }));
    let over = false;
    const cast = (index: number, vote: StoreVote): void => {
      if (over || isCast(votes[index])) return;
      votes[index] = vote;
      const decision = question.decide(tallyOf(votes));
      if (decision === undefined) return;
      over = true;
      cancelTimer();
      resolve({ decision, votes });
    };
    const giveUp = (): void => {
      const reason = `no answer within ${timeoutMs} ms`;
      for (const [index, { store }] of votes.entries()) {
        cast(index, { store, error: new LockStoreError({ store, operation, key: owned.key, reason }) });
      }
    };
    // After a blocked event loop timers run before sockets are read: the answers may be here already. Look first.
    const cancelTimer = clock.setTimer(timeoutMs, () => void setImmediate(giveUp));
    for (const [index, part] of parts.entries()) {
      const store = part.store.name;
      question
        .ask(part, () => over)
        .then(
          (outcome) => cast(index, { store, outcome }),
          (error) => cast(index, { store, error }),
        );
    }
  });
}

/**
 * Decides by a quorum: `yes` when enough stores say so, and otherwise by what has kept the others from it. `first` is
 * the stronger reason, which holds when it alone was enough to prevent the quorum; `else` is what holds otherwise.
 * Whatever the votes, the last one decides, so an even split ends too.
 */
export function byQuorum<const Yes extends string, const First extends string, const Else extends string>(rule: {
  readonly quorum: number;
  readonly yes: Yes;
  readonly first: First;
  readonly else: Else;
}): (tally: Tally) => Yes | First | Else | undefined {
  const { quorum } = rule;
  return (tally) => {
    const inFavour = tally.count(rule.yes);
    if (inFavour >= quorum) return rule.yes;
    const withoutFirst = tally.total - countOf(rule.first, tally);
    if (withoutFirst < quorum) return rule.first;
    return inFavour + tally.pending < quorum && withoutFirst - tally.pending >= quorum ? rule.else : undefined;
  };
}

/** The decision that a quorum could not be found because of faults. */
export const FAULT = "fault" as const;

function countOf(outcome: string, tally: Tally): number {
  return outcome === FAULT ? tally.faults : tally.count(outcome);
}

function tallyOf(votes: readonly StoreVote[]): Tally {
  return {
    total: votes.length,
    count: (outcome) => votes.filter((vote) => vote.outcome === outcome).length,
    faults: votes.filter(({ error }) => error !== undefined).length,
    pending: votes.filter((vote) => !isCast(vote)).length,
  };
}

function isCast(vote: StoreVote | undefined): boolean {
  return vote?.outcome !== undefined || vote?.error !== undefined;
}
