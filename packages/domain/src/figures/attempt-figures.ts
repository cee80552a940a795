import { ATTEMPT_STATES, type AttemptState } from "../vocabulary.ts";
import { type Figure, ranked } from "./read-figures.ts";

/** The attempts in each state, 0 included. They count attempts, of which a device may have several. */
export type AttemptCounts = Readonly<Record<AttemptState, number>>;

/** How the attempts of a rollout, or of all of a product's, stand at this moment. */
export interface AttemptFigures {
  readonly attempts: AttemptCounts;
  /** Why attempts have failed or timed out, the most frequent reason first. */
  readonly failures: readonly FailureFigure[];
}

export interface FailureFigure {
  readonly state: "failed" | "timed_out";
  /** The device's own number; `null`: it gave none. */
  readonly code: number | null;
  /** The device's own words, with `#` in the place of digits; `null`: it said nothing. */
  readonly message: string | null;
  readonly count: number;
}

/** Makes them of figures of the kinds `rollout_state` and `rollout_failure`; others are passed over. */
export function attemptFigures(found: readonly Figure[], limit: number): AttemptFigures {
  const states = new Map(found.filter(({ kind }) => kind === "rollout_state").map(({ key, count }) => [key, count]));
  const failures = found.filter(({ kind }) => kind === "rollout_failure");
  return {
    attempts: countsOf((state) => states.get(state) ?? 0),
    failures: ranked(failures, limit).map(failureOf),
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
