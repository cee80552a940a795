import { ATTEMPT_STATES, type AttemptState } from "../vocabulary.ts";
import type { Figure, LeftOff, ReadFigures } from "./read-figures.ts";

/** The attempts in each state, 0 included. They count attempts, of which a device may have several. */
export type AttemptCounts = Readonly<Record<AttemptState, number>>;

/** How the attempts of a rollout, or of all of a product's, stand at this moment. */
export interface AttemptFigures {
  readonly attempts: AttemptCounts;
  /** Why attempts have failed or timed out, the most frequent reason first. */
  readonly failures: readonly FailureFigure[];
  readonly failuresLeftOff: LeftOff;
}

export interface FailureFigure {
  readonly state: "failed" | "timed_out";
  /** The device's own number; `null`: it gave none. */
  readonly code: number | null;
  /** The device's own words, with `#` in the place of digits; `null`: it said nothing. */
  readonly message: string | null;
  readonly count: number;
}

/** Makes them of figures of the kind `rollout_state`, others being passed over, and of ranked ones: `rollout_failure`. */
export function attemptFigures({ all, greatest, leftOff }: ReadFigures): AttemptFigures {
  const states = new Map(all.filter(({ kind }) => kind === "rollout_state").map(({ key, count }) => [key, count]));
  return {
    attempts: countsOf((state) => states.get(state) ?? 0),
    failures: greatest.map(failureOf),
    failuresLeftOff: leftOff,
  };
}

export function countsOf(count: (state: AttemptState) => number): AttemptCounts {
  return Object.fromEntries(ATTEMPT_STATES.map((state) => [state, count(state)])) as AttemptCounts;
}

/** `state:code:message`, as the database's trigger has written it. */
function failureOf({ key, count }: Figure): FailureFigure {
  const [, state, code, message] = /^(failed|timed_out):(-?\d*):(.*)$/s.exec(key) ?? [];
  return {
    state: state as FailureFigure["state"],
    code: code === "" ? null : Number(code),
    message: message === "" || message === undefined ? null : message,
    count,
  };
}
