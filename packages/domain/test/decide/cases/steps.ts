import { type Case, closed, paused, running, step, without } from "./case.ts";

export const STEP_CASES: readonly Case[] = [
  {
    title: "a device below the required version is offered a step first",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), step],
    expect: "offer 1.5.0",
  },
  {
    title: "a device at the required version is offered the target",
    device: { runs: "1.5.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), step],
    expect: "offer 2.0.0",
  },
  {
    title: "a device above the required version is offered the target",
    device: { runs: "1.7.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), step],
    expect: "offer 2.0.0",
  },
  {
    title: "the required version need not be one that exists: a device below it is offered a step",
    device: { runs: "1.4.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), running("1.6.0", without), running("1.0.0", without)],
    expect: "offer 1.6.0",
  },
  {
    title: "the required version need not be one that exists: a device above it is offered the target",
    device: { runs: "1.5.1" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), running("1.6.0", without), running("1.0.0", without)],
    expect: "offer 2.0.0",
  },
  {
    title: "the step is the newest that satisfies the requirement",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), step, running("1.8.0", without), running("1.4.0", without)],
    expect: "offer 1.8.0",
  },
  {
    title: "a step is never as new as the target",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0", { requires: "1.5.0", rollouts: [{ priority: 1 }] }), running("3.0.0", without), step],
    expect: "offer 1.5.0",
  },
  {
    title: "a step that requires a step itself is reached by it",
    device: { runs: "0.9.0" },
    firmware: [
      running("2.0.0", { requires: "1.5.0" }),
      running("1.5.0", { ...without, requires: "1.0.0" }),
      running("1.0.0", without),
    ],
    expect: "offer 1.0.0",
  },
  {
    title: "the newest step that can be reached is taken, not one that cannot",
    device: { runs: "0.9.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), running("1.8.0", { ...without, requires: "1.7.0" }), step],
    expect: "offer 1.5.0",
  },
  {
    title: "a withdrawn firmware is no step",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), running("1.5.0", { ...without, state: "withdrawn" })],
    expect: "none NO_FIRMWARE",
  },
  {
    title: "firmware for other hardware is no step",
    device: { runs: "1.0.0", hardware: "A" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), running("1.5.0", { ...without, hardware: ["B"] })],
    expect: "none NO_FIRMWARE",
  },
  {
    title: "a missing step is told, not that the device is up to date",
    device: { runs: "1.0.0" },
    firmware: [running("1.0.0"), running("2.0.0", { requires: "1.5.0" })],
    expect: "none NO_FIRMWARE",
  },
  {
    title: "requirements in a circle end",
    device: { runs: "1.0.0" },
    firmware: [running("3.0.0", { requires: "2.0.0" }), running("2.0.0", { ...without, requires: "3.0.0" })],
    expect: "none NO_FIRMWARE",
  },
  {
    title: "a device that never said what it runs is offered the target",
    firmware: [running("2.0.0", { requires: "1.5.0" }), step],
    expect: "offer 2.0.0",
  },
  {
    title: "a step has attempts of its own",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0", { requires: "1.5.0" }), step],
    records: [closed("1.5.0", [["failed", 5]], { by: "2.0.0" })],
    expect: "none BACKOFF",
  },
  {
    title: "the step on the way to a paused target is not offered",
    device: { runs: "1.0.0" },
    firmware: [running("2.0.0", { requires: "1.5.0", ...paused }), step],
    expect: "none ROLLOUT_PAUSED",
  },
];
