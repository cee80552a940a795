import { describe, expect, it } from "vitest";
import { type AttemptEvent, nextState, type Transition } from "../../src/attempts/transitions.ts";
import {
  ATTEMPT_STATES,
  type AttemptState,
  CANCEL_OUTCOMES,
  CONFIRM_BY,
  LIVE_ATTEMPT_STATES,
  REPORTED_STATES,
  TERMINAL_ATTEMPT_STATES,
} from "../../src/vocabulary.ts";

/**
 * The contract, every state (rows) by every event (columns). A state's name: it moves there. `=` repeated, `.` history,
 * `x` closed. `a/b`: a where the device's word is success, b where the new version has to be seen. `*`: to what the
 * cancellation was for. `cancelling?` ends as superseded, `cancelling` as cancelled. `!`: an operator has cancelled it;
 * `+`: the same, and the state stays. `-`: the service takes back what the device has not begun.
 */
const CONTRACT = `
                      | confirmed | denied | downloading | downloaded | installing | installed | succeeded           | failed | cancelled | cancel_rejected | target_version | other_version | operator_cancel | cancel     | supersede   | timeout
awaiting_confirmation | offered   | .      | .           | .          | .          | .         | succeeded/installed | failed | cancelled | .               | succeeded      | .             | cancelled!      | cancelled- | superseded  | timed_out
offered               | =         | .      | downloading | downloaded | installing | installed | succeeded/installed | failed | cancelled | .               | succeeded      | .             | cancelled!      | cancelled- | superseded  | timed_out
downloading           | =         | .      | .           | downloaded | installing | installed | succeeded/installed | failed | cancelled | .               | succeeded      | .             | cancelling!     | cancelling | cancelling? | timed_out
downloaded            | =         | .      | .           | .          | installing | installed | succeeded/installed | failed | cancelled | .               | succeeded      | .             | cancelling!     | cancelling | cancelling? | timed_out
installing            | =         | .      | .           | .          | .          | installed | succeeded/installed | failed | cancelled | .               | succeeded      | .             | cancelling!     | cancelling | .           | timed_out
installed             | =         | .      | .           | .          | .          | .         | succeeded/.         | failed | cancelled | .               | succeeded      | .             | cancelling!     | cancelling | .           | timed_out
cancelling            | =         | .      | .           | .          | .          | .         | succeeded/installed | failed | *         | installing      | succeeded      | .             | +               | =          | =           | timed_out
succeeded             | x         | x      | x           | x          | x          | x         | =                   | .      | .         | x               | =              | .             | x               | x          | x           | x
failed                | x         | x      | x           | x          | x          | x         | .                   | =      | .         | x               | .              | .             | +               | x          | x           | x
cancelled             | x         | x      | x           | x          | x          | x         | .                   | .      | =         | x               | .              | .             | +               | =          | x           | x
timed_out             | x         | x      | x           | x          | x          | x         | succeeded/.         | .      | .         | x               | succeeded      | .             | +               | x          | x           | =
superseded            | x         | x      | x           | x          | x          | x         | .                   | .      | =         | x               | .              | .             | +               | x          | =           | x
`;

const lines = CONTRACT.trim()
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()));
const EVENTS = (lines[0] as string[]).slice(1) as AttemptEvent[];
const CELLS = lines
  .slice(1)
  .flatMap(([state, ...cells]) =>
    cells.map((cell, index) => ({ state: state as AttemptState, event: EVENTS[index] as AttemptEvent, cell })),
  );
const SIGNS = { "=": "repeated", ".": "history", x: "closed" } as const;
const SERVER_EVENTS = ["target_version", "other_version", "operator_cancel", "cancel", "supersede", "timeout"] as const;

function expected(cell: string, before: { readonly state: AttemptState; readonly cancelOutcome: Outcome }): Transition {
  const { cancelOutcome } = before;
  const byOperator = cancelOutcome === "cancelled";
  if (cell in SIGNS) return { effect: SIGNS[cell as keyof typeof SIGNS] };
  if (cell === "+" && byOperator) return { effect: "repeated" };
  if (cell === "+") return { effect: "moved", state: before.state, cancelOutcome: "cancelled" };
  const kept = byOperator ? "cancelled" : null;
  if (cell === "*") return { effect: "moved", state: cancelOutcome ?? "cancelled", cancelOutcome: kept };
  const state = cell.replace(/[!?-]/, "") as AttemptState;
  if (cell.endsWith("!")) return { effect: "moved", state, cancelOutcome: "cancelled" };
  if (/[?-]$/.test(cell) && !byOperator) return { effect: "moved", state, cancelOutcome: "superseded" };
  // What an operator has cancelled stays so, unless it has succeeded all the same.
  return { effect: "moved", state, cancelOutcome: state === "succeeded" ? null : kept };
}

type Outcome = "cancelled" | "superseded" | null;

describe("nextState", () => {
  it("has an expected outcome written down for every state and every event", () => {
    expect(EVENTS).toEqual([...REPORTED_STATES, ...SERVER_EVENTS]);
    expect(lines.slice(1).map(([state]) => state)).toEqual([...ATTEMPT_STATES]);
    expect(CELLS).toHaveLength(ATTEMPT_STATES.length * EVENTS.length);
  });

  for (const confirmBy of CONFIRM_BY) {
    for (const { state, event, cell } of CELLS) {
      const [byReport, byVersion] = cell.split("/") as [string, string?];
      const outcome = confirmBy === "report" ? byReport : (byVersion ?? byReport);
      it(`confirmed by ${confirmBy}: ${state} + ${event} → ${outcome}`, () => {
        for (const cancelOutcome of [null, ...CANCEL_OUTCOMES]) {
          expect(nextState({ state, cancelOutcome, confirmBy }, event)).toEqual(
            expected(outcome, { state, cancelOutcome }),
          );
        }
      });
    }
  }

  it("never reopens a closed attempt", () => {
    for (const state of TERMINAL_ATTEMPT_STATES) {
      for (const event of EVENTS) {
        for (const confirmBy of CONFIRM_BY) {
          const next = nextState({ state, cancelOutcome: null, confirmBy }, event);
          const reopened = next.effect === "moved" && next.state !== state;
          if (reopened) expect([state, next.state]).toEqual(["timed_out", "succeeded"]);
        }
      }
    }
  });

  it("ends every open attempt on the device's last word, its target version, or a timeout", () => {
    for (const state of LIVE_ATTEMPT_STATES) {
      for (const event of ["failed", "cancelled", "target_version", "timeout"] as const) {
        const next = nextState({ state, cancelOutcome: null, confirmBy: "version" }, event);
        expect(next.effect === "moved" && TERMINAL_ATTEMPT_STATES.some((end) => end === next.state)).toBe(true);
      }
    }
  });
});
