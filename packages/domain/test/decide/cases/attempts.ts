import type { AttemptState } from "@ota/domain";
import { type Case, closed, type GivenRecord, running } from "./case.ts";

export const ATTEMPT_CASES: readonly Case[] = [
  {
    title: "after a failure the same firmware is offered again, but not at once",
    firmware: [running("2.0.0")],
    records: [closed("2.0.0", [["failed", 9]])],
    expect: "none BACKOFF",
  },
  {
    title: "ten minutes after a failure the next attempt is due",
    firmware: [running("2.0.0")],
    records: [closed("2.0.0", [["failed", 11]])],
    expect: "offer 2.0.0",
  },
  {
    title: "the pause doubles with each attempt",
    firmware: [running("2.0.0")],
    records: [
      closed("2.0.0", [
        ["failed", 50],
        ["timed_out", 19],
      ]),
    ],
    expect: "none BACKOFF",
  },
  {
    title: "twenty minutes after the second failure the third attempt is due",
    firmware: [running("2.0.0")],
    records: [
      closed("2.0.0", [
        ["failed", 50],
        ["timed_out", 21],
      ]),
    ],
    expect: "offer 2.0.0",
  },
  {
    title: "after three attempts a firmware is not offered again",
    firmware: [running("2.0.0")],
    records: [
      closed("2.0.0", [
        ["failed", 900],
        ["timed_out", 800],
        ["cancelled", 700],
      ]),
    ],
    expect: "none ATTEMPTS_EXHAUSTED",
  },
  {
    title: "after an operator's reset three more attempts may follow, and the first at once",
    firmware: [running("2.0.0")],
    records: [
      closed(
        "2.0.0",
        [
          ["failed", 9],
          ["failed", 5],
          ["failed", 1],
        ],
        { forgiven: 3 },
      ),
    ],
    expect: "offer 2.0.0",
  },
  {
    title: "attempts after an operator's reset count",
    firmware: [running("2.0.0")],
    records: [
      closed(
        "2.0.0",
        [
          ["failed", 90],
          ["failed", 80],
          ["failed", 70],
          ["failed", 1],
        ],
        { forgiven: 3 },
      ),
    ],
    expect: "none BACKOFF",
  },
  {
    title: "superseded attempts do not count",
    firmware: [running("2.0.0")],
    records: [
      closed("2.0.0", [
        ["superseded", 3],
        ["superseded", 2],
        ["superseded", 1],
      ]),
    ],
    expect: "offer 2.0.0",
  },
  {
    title: "what an operator has cancelled is not offered again, however long ago",
    firmware: [running("2.0.0")],
    records: [cancelledByOperator("2.0.0", "cancelled")],
    expect: "none UPGRADE_CANCELLED",
  },
  {
    title: "nor by another rollout of the same firmware",
    firmware: [running("2.0.0", { rollouts: [{ state: "stopped" }, {}] })],
    records: [cancelledByOperator("2.0.0", "cancelled")],
    expect: "none UPGRADE_CANCELLED",
  },
  {
    title: "nor where the device could not stop, and failed or fell silent then",
    firmware: [running("2.0.0")],
    records: [cancelledByOperator("2.0.0", "timed_out")],
    expect: "none UPGRADE_CANCELLED",
  },
  {
    title: "what an operator has cancelled makes way for the next best",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0"), running("1.5.0")],
    records: [cancelledByOperator("2.0.0", "failed")],
    expect: "offer 1.5.0",
  },
  {
    title: "a reset takes an operator's cancellation back, also before the device has answered it",
    firmware: [running("2.0.0")],
    records: [closed("2.0.0", [["cancelled", 1]], { forgiven: 1 })],
    expect: "offer 2.0.0",
  },
  {
    title: "attempts that ended with their rollout do not count in another one",
    firmware: [running("2.0.0", { rollouts: [{ state: "stopped" }, {}] })],
    records: [
      closed("2.0.0", [
        ["cancelled", 3],
        ["cancelled", 2],
        ["cancelled", 1],
      ]),
    ],
    expect: "offer 2.0.0",
  },
  {
    title: "offers that were taken back before the device had begun use up no attempt",
    firmware: [running("2.0.0")],
    records: [takenBack("2.0.0", [900, 800, 700, 600])],
    expect: "offer 2.0.0",
  },
  {
    title: "but the pause doubles with each",
    firmware: [running("2.0.0")],
    records: [takenBack("2.0.0", [50, 19])],
    expect: "none BACKOFF",
  },
  {
    title: "and is a minute at least",
    product: { backoffSeconds: 0 },
    firmware: [running("2.0.0")],
    records: [takenBack("2.0.0", [0.5])],
    expect: "none BACKOFF",
  },
  {
    title: "failures count among them as ever",
    product: { maxAttempts: 1 },
    firmware: [running("2.0.0")],
    records: [
      {
        firmware: "2.0.0",
        attempts: [{ state: "failed", closedMinutesAgo: 9_000 }, ...takenBack("2.0.0", [800]).attempts],
      },
    ],
    expect: "none ATTEMPTS_EXHAUSTED",
  },
  {
    title: "attempts that a device itself has given up count",
    firmware: [running("2.0.0")],
    records: [closed("2.0.0", [["cancelled", 9]])],
    expect: "none BACKOFF",
  },
  {
    title: "failures count in another rollout of the same firmware",
    firmware: [running("2.0.0", { rollouts: [{ state: "stopped" }, {}] })],
    records: [
      closed("2.0.0", [
        ["failed", 900],
        ["timed_out", 800],
        ["failed", 700],
      ]),
    ],
    expect: "none ATTEMPTS_EXHAUSTED",
  },
  {
    title: "a device that fell back is eligible again",
    device: { runs: "1.0.0", confirmed: "2.0.0" },
    firmware: [running("2.0.0")],
    records: [closed("2.0.0", [["succeeded", 60]])],
    expect: "offer 2.0.0",
  },
  {
    title: "a device that has just succeeded by its word has time to restart",
    device: { runs: "1.0.0", confirmed: "2.0.0" },
    firmware: [running("2.0.0")],
    records: [closed("2.0.0", [["succeeded", 2]])],
    expect: "none BACKOFF",
  },
  {
    title: "a device that falls back every time is left alone in the end",
    device: { runs: "1.0.0", confirmed: "2.0.0" },
    firmware: [running("2.0.0")],
    records: [
      closed("2.0.0", [
        ["succeeded", 900],
        ["succeeded", 800],
        ["succeeded", 700],
      ]),
    ],
    expect: "none ATTEMPTS_EXHAUSTED",
  },
  {
    title: "a firmware that failed too often makes way for the next best",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0"), running("1.5.0")],
    records: [
      closed("2.0.0", [
        ["failed", 900],
        ["failed", 800],
        ["failed", 700],
      ]),
    ],
    expect: "offer 1.5.0",
  },
  {
    title: "attempts on another firmware do not count",
    firmware: [running("2.0.0"), running("1.0.0")],
    records: [closed("1.0.0", [["failed", 3]])],
    expect: "offer 2.0.0",
  },
];

function takenBack(firmware: string, closedMinutesAgo: readonly number[]): GivenRecord {
  const taken = { state: "cancelled", cancelOutcome: "superseded" } as const;
  return { firmware, attempts: closedMinutesAgo.map((minutes) => ({ ...taken, closedMinutesAgo: minutes })) };
}

function cancelledByOperator(firmware: string, state: AttemptState): GivenRecord {
  return { firmware, attempts: [{ state, cancelOutcome: "cancelled", closedMinutesAgo: 9_000 }] };
}
