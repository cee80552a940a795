import type { LiveAttemptState } from "@ota/domain";
import { type Case, type GivenRecord, open, paused, running, step, without } from "./case.ts";

type Situation = keyof typeof SITUATIONS;
const SITUATIONS = {
  wanted: ["its firmware is the best offer", { firmware: [running("2.0.0"), running("1.5.0")] }],
  better: ["a better firmware is offered", { firmware: [running("2.0.0"), running("3.0.0")] }],
  paused: ["its rollout is paused", { firmware: [running("2.0.0", paused)] }],
  pausedWithOther: [
    "its rollout is paused and another goes on",
    { firmware: [running("2.0.0", paused), running("1.5.0")] },
  ],
  withdrawn: [
    "its firmware is withdrawn",
    { firmware: [running("2.0.0", { state: "withdrawn", rollouts: [{ state: "stopped" }] })] },
  ],
  withdrawnWithOther: [
    "its firmware is withdrawn and another is offered",
    { firmware: [running("2.0.0", { state: "withdrawn", rollouts: [{ state: "stopped" }] }), running("1.5.0")] },
  ],
  stopped: ["its rollout is stopped", { firmware: [running("2.0.0", { rollouts: [{ state: "stopped" }] })] }],
  finished: ["its rollout is finished", { firmware: [running("2.0.0", { rollouts: [{ state: "finished" }] })] }],
  otherHardware: [
    "the device turns out to be other hardware",
    { device: { hardware: "B" }, firmware: [running("2.0.0", { hardware: ["A"] })] },
  ],
  otherChannel: [
    "the device was moved to another channel",
    { device: { channel: "beta" }, firmware: [running("2.0.0")] },
  ],
  newerByHand: ["the device got a newer version by hand", { device: { runs: "2.1.0" }, firmware: [running("2.0.0")] }],
  unknownVersion: [
    "the device reports nonsense as its version",
    { device: { runs: "recovery" }, firmware: [running("2.0.0")] },
  ],
  blocked: ["the device is blocked", { device: { blocked: true }, firmware: [running("2.0.0")] }],
} as const satisfies Record<string, readonly [string, Pick<Case, "device" | "firmware">]>;

/** State of the open attempt × what has become of its offer. */
export const LIVE_CASES: readonly Case[] = [
  ...phase(["awaiting_confirmation", "offered"], {
    wanted: "continue 2.0.0",
    better: "supersede 2.0.0, then offer 3.0.0 2.0.0",
    paused: "none ROLLOUT_PAUSED",
    pausedWithOther: "supersede 2.0.0, then offer 1.5.0",
    withdrawn: "cancel 2.0.0, then none NO_FIRMWARE",
    withdrawnWithOther: "cancel 2.0.0, then offer 1.5.0",
    stopped: "cancel 2.0.0, then none NO_FIRMWARE",
    finished: "cancel 2.0.0, then none NO_FIRMWARE",
    otherHardware: "cancel 2.0.0, then none HARDWARE_MISMATCH",
    otherChannel: "cancel 2.0.0, then none NOT_IN_ROLLOUT",
    newerByHand: "cancel 2.0.0, then none DOWNGRADE_REFUSED",
    unknownVersion: "none UNKNOWN_VERSION",
    blocked: "none DEVICE_BLOCKED",
  }),
  ...phase(["downloading", "downloaded"], {
    wanted: "continue 2.0.0",
    better: "continue 2.0.0",
    paused: "continue 2.0.0",
    pausedWithOther: "continue 2.0.0",
    withdrawn: "cancel 2.0.0, then none NO_FIRMWARE, stopping 2.0.0",
    withdrawnWithOther: "cancel 2.0.0, then none NO_FIRMWARE, stopping 2.0.0",
    stopped: "cancel 2.0.0, then none NO_FIRMWARE, stopping 2.0.0",
    finished: "continue 2.0.0",
    otherHardware: "cancel 2.0.0, then none HARDWARE_MISMATCH, stopping 2.0.0",
    otherChannel: "cancel 2.0.0, then none NOT_IN_ROLLOUT, stopping 2.0.0",
    newerByHand: "cancel 2.0.0, then none DOWNGRADE_REFUSED, stopping 2.0.0",
    unknownVersion: "continue 2.0.0",
    blocked: "none DEVICE_BLOCKED",
  }),
  ...phase(["installing", "installed"], {
    wanted: "continue 2.0.0",
    better: "continue 2.0.0",
    paused: "continue 2.0.0",
    pausedWithOther: "continue 2.0.0",
    withdrawn: "continue 2.0.0",
    withdrawnWithOther: "continue 2.0.0",
    stopped: "continue 2.0.0",
    finished: "continue 2.0.0",
    otherHardware: "continue 2.0.0",
    otherChannel: "continue 2.0.0",
    newerByHand: "continue 2.0.0",
    unknownVersion: "continue 2.0.0",
    blocked: "none DEVICE_BLOCKED",
  }),
  ...phase(["cancelling"], {
    wanted: "none BACKOFF, stopping 2.0.0",
    better: "none BACKOFF, stopping 2.0.0",
    paused: "none ROLLOUT_PAUSED, stopping 2.0.0",
    pausedWithOther: "none BACKOFF, stopping 2.0.0",
    withdrawn: "none NO_FIRMWARE, stopping 2.0.0",
    withdrawnWithOther: "none NO_FIRMWARE, stopping 2.0.0",
    stopped: "none NO_FIRMWARE, stopping 2.0.0",
    finished: "none NO_FIRMWARE, stopping 2.0.0",
    otherHardware: "none HARDWARE_MISMATCH, stopping 2.0.0",
    otherChannel: "none NOT_IN_ROLLOUT, stopping 2.0.0",
    newerByHand: "none DOWNGRADE_REFUSED, stopping 2.0.0",
    unknownVersion: "none UNKNOWN_VERSION, stopping 2.0.0",
    blocked: "none DEVICE_BLOCKED, stopping 2.0.0",
  }),
  {
    title: "cancelling by an operator's word, and its firmware is the best offer",
    firmware: [running("2.0.0")],
    records: [stoppedByOperator("cancelling")],
    expect: "none UPGRADE_CANCELLED, stopping 2.0.0",
  },
  {
    title: "cancelling by an operator's word, and a better firmware is offered",
    firmware: [running("2.0.0"), running("3.0.0")],
    records: [stoppedByOperator("cancelling")],
    expect: "none UPGRADE_CANCELLED, stopping 2.0.0",
  },
  {
    title: "installing after all, as the device cannot stop what an operator has cancelled",
    firmware: [running("2.0.0")],
    records: [stoppedByOperator("installing")],
    expect: "continue 2.0.0",
  },
  {
    title: "offered, and a rollout that ranks higher would take the device back",
    device: { runs: "2.0.0" },
    firmware: [running("1.0.0", { rollouts: [{ allowDowngrade: true }] }), running("2.0.0")],
    records: [open("1.0.0", "offered")],
    expect: "cancel 1.0.0, then none UP_TO_DATE",
  },
  {
    title: "downloading, and a rollout that ranks higher would take the device back",
    device: { runs: "2.0.0" },
    firmware: [running("1.0.0", { rollouts: [{ allowDowngrade: true }] }), running("2.0.0")],
    records: [open("1.0.0", "downloading")],
    expect: "continue 1.0.0",
  },
  {
    title: "an open attempt is kept, however many there were",
    firmware: [running("2.0.0")],
    records: [
      {
        firmware: "2.0.0",
        attempts: [
          { state: "failed", closedMinutesAgo: 3 },
          { state: "failed", closedMinutesAgo: 2 },
          { state: "offered" },
        ],
      },
    ],
    expect: "continue 2.0.0",
  },
  {
    title: "an open attempt on a step is kept",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), step],
    records: [open("1.5.0", "offered", { by: "2.0.0" })],
    expect: "continue 1.5.0",
  },
  {
    title: "a device that is fetching a step goes on with it when a newer step comes",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), step, running("1.6.0", without)],
    records: [open("1.5.0", "downloading", { by: "2.0.0" })],
    expect: "continue 1.5.0",
  },
  {
    title: "an open attempt is kept where another rollout of the same firmware goes on",
    firmware: [running("2.0.0", { rollouts: [{ state: "stopped" }, {}] })],
    records: [open("2.0.0", "offered")],
    expect: "continue 2.0.0",
  },
];

function stoppedByOperator(state: LiveAttemptState): GivenRecord {
  return { firmware: "2.0.0", attempts: [{ state, cancelOutcome: "cancelled" }] };
}

function phase(states: readonly LiveAttemptState[], expected: Readonly<Record<Situation, string>>): readonly Case[] {
  return states.flatMap((state) =>
    (Object.keys(SITUATIONS) as Situation[]).map((name) => {
      const [words, given] = SITUATIONS[name];
      return { ...given, title: `${state}, and ${words}`, records: [open("2.0.0", state)], expect: expected[name] };
    }),
  );
}
