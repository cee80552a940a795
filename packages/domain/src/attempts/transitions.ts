import type { AttemptState, CancelOutcome, ConfirmBy, ReportedState } from "../vocabulary.ts";

/**
 * What can happen to an attempt: a report of the device by its word, or one of
 * - `target_version`: the device reports that it runs the attempt's firmware;
 * - `other_version`: the device reports that it runs something else;
 * - `operator_cancel`: an operator cancels the upgrade: its firmware is offered no more until that is taken back;
 * - `cancel`: the service ends the attempt, as its offer stands no more;
 * - `supersede`: another firmware takes its place;
 * - `timeout`: the device has been silent for too long.
 */
export type AttemptEvent = ReportedState | ServerEvent;
export type ServerEvent = "target_version" | "other_version" | "operator_cancel" | "cancel" | "supersede" | "timeout";

/**
 * What an event does:
 * - `moved`: the attempt changes to `state`, or stays in it and is marked as cancelled by an operator;
 * - `history`: nothing moves; a report is kept as history;
 * - `repeated`: what the event asks for is so already;
 * - `closed`: the attempt is over and takes no such event.
 */
export type Transition =
  | { readonly effect: "moved"; readonly state: AttemptState; readonly cancelOutcome: CancelOutcome | null }
  | { readonly effect: "history" | "repeated" | "closed" };

/** What decides about an event beside the state itself. */
export interface AttemptFacts {
  readonly state: AttemptState;
  /** As what it is to end; `cancelled` stays when it has ended: an operator has cancelled it. */
  readonly cancelOutcome: CancelOutcome | null;
  /** The product's rule for success. */
  readonly confirmBy: ConfirmBy;
}

/**
 * The whole life of an attempt as a pure function: state only moves forward, a report that lags behind is history, and
 * of the closed states only `timed_out` is revised, by a late success. A closed attempt takes no report of progress.
 *
 * An operator's cancellation stays with the attempt whatever becomes of it, except success: then nothing was cancelled.
 * An offer that the service has taken back before the device had begun is `cancelled` as `superseded`.
 */
export function nextState(attempt: AttemptFacts, event: AttemptEvent): Transition {
  const cell = TRANSITIONS[attempt.state][event];
  switch (cell) {
    case "history":
    case "repeated":
    case "closed":
      return { effect: cell };
    case "success":
      return success(attempt);
    case "end_cancel":
      return moved(attempt, attempt.cancelOutcome ?? "cancelled");
    case "marked":
      return attempt.cancelOutcome === "cancelled"
        ? { effect: "repeated" }
        : { effect: "moved", state: attempt.state, cancelOutcome: "cancelled" };
    default:
      return event === "operator_cancel"
        ? { effect: "moved", state: cell, cancelOutcome: "cancelled" }
        : moved(attempt, cell, outcomeOf(event, cell));
  }
}

/** Neither a device that is to stop for something better, nor an offer that was taken back, is cancelled for good. */
function outcomeOf(event: AttemptEvent, state: AttemptState): CancelOutcome | null {
  const stops = event === "supersede" && state === "cancelling";
  const isTakenBack = event === "cancel" && state === "cancelled";
  return stops || isTakenBack ? "superseded" : null;
}

/** The device's word is success itself, or only `installed` where the new version has to be seen. */
function success(attempt: AttemptFacts): Transition {
  const { confirmBy, state } = attempt;
  if (confirmBy === "report") return moved(attempt, "succeeded");
  return state === "installed" || state === "timed_out" ? { effect: "history" } : moved(attempt, "installed");
}

function moved(before: AttemptFacts, state: AttemptState, cancelOutcome: CancelOutcome | null = null): Transition {
  const byOperator = before.cancelOutcome === "cancelled" && state !== "succeeded";
  return { effect: "moved", state, cancelOutcome: byOperator ? "cancelled" : cancelOutcome };
}

type Cell = AttemptState | "history" | "repeated" | "closed" | "success" | "end_cancel" | "marked";
type Row = Readonly<Record<AttemptEvent, Cell>>;

/** What every open attempt has in common. The device's last word, and the version it runs, count in any open state. */
const OPEN = {
  confirmed: "repeated",
  denied: "history",
  downloading: "history",
  downloaded: "history",
  installing: "history",
  installed: "history",
  succeeded: "success",
  failed: "failed",
  cancelled: "cancelled",
  cancel_rejected: "history",
  target_version: "succeeded",
  other_version: "history",
  timeout: "timed_out",
} as const;

/** How a device says that it has ended is kept, whoever has ended the attempt before: it tells what became of it. */
const CLOSED = {
  confirmed: "closed",
  denied: "closed",
  downloading: "closed",
  downloaded: "closed",
  installing: "closed",
  installed: "closed",
  succeeded: "history",
  failed: "history",
  cancelled: "history",
  cancel_rejected: "closed",
  target_version: "history",
  other_version: "history",
  operator_cancel: "marked",
  cancel: "closed",
  supersede: "closed",
  timeout: "closed",
} as const;

/** Nobody has to be told before the device has begun; afterwards it has to be asked to stop. */
const NOT_BEGUN = { operator_cancel: "cancelled", cancel: "cancelled", supersede: "superseded" } as const;
const BEGUN = { operator_cancel: "cancelling", cancel: "cancelling", supersede: "cancelling" } as const;
/** Past `downloaded` a device is left to finish, unless an operator insists. */
const COMMITTED = { operator_cancel: "cancelling", cancel: "cancelling", supersede: "history" } as const;

const TRANSITIONS: Readonly<Record<AttemptState, Row>> = {
  // Without consent, progress is only noted.
  awaiting_confirmation: { ...OPEN, ...NOT_BEGUN, confirmed: "offered" },
  offered: {
    ...OPEN,
    ...NOT_BEGUN,
    downloading: "downloading",
    downloaded: "downloaded",
    installing: "installing",
    installed: "installed",
  },
  downloading: { ...OPEN, ...BEGUN, downloaded: "downloaded", installing: "installing", installed: "installed" },
  downloaded: { ...OPEN, ...BEGUN, installing: "installing", installed: "installed" },
  installing: { ...OPEN, ...COMMITTED, installed: "installed" },
  installed: { ...OPEN, ...COMMITTED },
  // A device that refuses to stop is past the point where it could: it goes on as installing.
  cancelling: {
    ...OPEN,
    cancelled: "end_cancel",
    cancel_rejected: "installing",
    operator_cancel: "marked",
    cancel: "repeated",
    supersede: "repeated",
  },
  succeeded: { ...CLOSED, succeeded: "repeated", target_version: "repeated", operator_cancel: "closed" },
  failed: { ...CLOSED, failed: "repeated" },
  cancelled: { ...CLOSED, cancelled: "repeated", cancel: "repeated" },
  timed_out: { ...CLOSED, succeeded: "success", target_version: "succeeded", timeout: "repeated" },
  superseded: { ...CLOSED, cancelled: "repeated", supersede: "repeated" },
};
