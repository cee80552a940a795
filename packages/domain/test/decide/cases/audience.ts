import { type Case, closed, paused, running } from "./case.ts";

export const AUDIENCE_CASES: readonly Case[] = [
  {
    title: "firmware for other hardware is refused",
    device: { hardware: "B" },
    firmware: [running("2.0.0", { hardware: ["A"] })],
    expect: "none HARDWARE_MISMATCH",
  },
  {
    title: "firmware for this hardware among others is offered",
    device: { hardware: "B" },
    firmware: [running("2.0.0", { hardware: ["A", "B"] })],
    expect: "offer 2.0.0",
  },
  {
    title: "firmware for certain hardware is refused while the device's is unknown",
    firmware: [running("2.0.0", { hardware: ["A"] })],
    expect: "none HARDWARE_MISMATCH",
  },
  {
    title: "firmware for any hardware is offered while the device's is unknown",
    firmware: [running("2.0.0")],
    expect: "offer 2.0.0",
  },
  {
    title: "each hardware gets its own newest firmware",
    device: { runs: "1.0.0", hardware: "A" },
    firmware: [running("3.0.0", { hardware: ["B"] }), running("2.0.0", { hardware: ["A"] })],
    expect: "offer 2.0.0",
  },
  {
    title: "newer firmware for other hardware does not make a device out of date",
    device: { runs: "2.0.0", hardware: "A" },
    firmware: [running("3.0.0", { hardware: ["B"] }), running("2.0.0", { hardware: ["A"] })],
    expect: "none UP_TO_DATE",
  },
  {
    title: "a device is offered only what its channel is offered",
    device: { channel: "beta" },
    firmware: [running("2.0.0", { rollouts: [{ channel: "beta" }] }), running("3.0.0")],
    expect: "offer 2.0.0",
  },
  {
    title: "a device in a channel without rollouts is told that it is in none",
    device: { channel: "beta" },
    firmware: [running("2.0.0")],
    expect: "none NOT_IN_ROLLOUT",
  },
  {
    title: "newer firmware of another channel does not make a device out of date",
    device: { runs: "1.0.0" },
    firmware: [running("1.0.0"), running("2.0.0", { rollouts: [{ channel: "beta" }] })],
    expect: "none UP_TO_DATE",
  },
  {
    title: "a rollout to nobody reaches nobody",
    firmware: [running("2.0.0", { rollouts: [{ percentageBasisPoints: 0 }] })],
    expect: "none NOT_IN_ROLLOUT",
  },
  {
    title: "a device outside of a rollout is offered what it is inside of",
    device: { runs: "1.0.0" },
    firmware: [running("3.0.0", { rollouts: [{ percentageBasisPoints: 0 }] }), running("2.0.0")],
    expect: "offer 2.0.0",
  },
  {
    title: "of several grounds of one offer the first in precedence is given: hardware before downgrade",
    device: { runs: "3.0.0", hardware: "B" },
    firmware: [running("2.0.0", { hardware: ["A"] })],
    expect: "none HARDWARE_MISMATCH",
  },
  {
    title: "of several grounds of one offer the first in precedence is given: version before channel",
    device: { runs: "junk", channel: "beta" },
    firmware: [running("2.0.0")],
    expect: "none UNKNOWN_VERSION",
  },
  {
    title: "of several grounds of one offer the first in precedence is given: channel before pause",
    device: { channel: "beta" },
    firmware: [running("2.0.0", paused)],
    expect: "none NOT_IN_ROLLOUT",
  },
  {
    title: "of several grounds of one offer the first in precedence is given: pause before attempts",
    firmware: [running("2.0.0", paused)],
    records: [
      closed("2.0.0", [
        ["failed", 90],
        ["failed", 60],
        ["failed", 30],
      ]),
    ],
    expect: "none ROLLOUT_PAUSED",
  },
];
