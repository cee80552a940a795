import { type Case, closed, type GivenRollout, open, running } from "./case.ts";

const by = (rollout: GivenRollout) => [running("2.0.0", { rollouts: [rollout] })];
const full = { taken: { live: 5, granted: 9 }, maxConcurrent: 5 };
const windowIn = (opensIn: number, closesIn: number, timeZone = "UTC") => ({ window: { opensIn, closesIn, timeZone } });

/** Whom a rollout addresses: groups, attributes, hardware, the allow-list. */
export const TARGET_CASES: readonly Case[] = [
  {
    title: "a device in one of the rollout's groups is offered it",
    device: { groups: ["lab", "berlin"] },
    firmware: by({ groups: ["munich", "berlin"] }),
    expect: "offer 2.0.0",
  },
  {
    title: "a device in none of the rollout's groups is not",
    device: { groups: ["lab"] },
    firmware: by({ groups: ["munich", "berlin"] }),
    expect: "none NOT_IN_ROLLOUT",
  },
  {
    title: "a device without attributes meets no filter that asks for one",
    firmware: by({ attributeFilter: { attribute: "region", eq: "eu" } }),
    expect: "none NOT_IN_ROLLOUT",
  },
  {
    title: "a device whose attributes meet the filter is offered it",
    device: { attributes: { region: "eu", ram: 512, bootloader: "2.4.1", beta: true } },
    firmware: by({
      attributeFilter: {
        all: [
          { attribute: "region", in: ["eu", "uk"] },
          { attribute: "ram", eq: 512 },
          { attribute: "bootloader", semver: ">=2.1 <3" },
          {
            any: [
              { attribute: "beta", eq: true },
              { attribute: "lab", exists: true },
            ],
          },
          { not: { attribute: "frozen", exists: true } },
        ],
      },
    }),
    expect: "offer 2.0.0",
  },
  {
    title: "a number is not the text that it is written as",
    device: { attributes: { ram: "512" } },
    firmware: by({ attributeFilter: { attribute: "ram", eq: 512 } }),
    expect: "none NOT_IN_ROLLOUT",
  },
  {
    title: "hardware that the rollout leaves out is refused, although the firmware runs on it",
    device: { hardware: "B" },
    firmware: [running("2.0.0", { hardware: ["A", "B"], rollouts: [{ hardware: ["A"] }] })],
    expect: "none HARDWARE_MISMATCH",
  },
  {
    title: "hardware that the firmware does not run on is refused, although the rollout names it",
    device: { hardware: "B" },
    firmware: [running("2.0.0", { hardware: ["A"], rollouts: [{ hardware: ["A", "B"] }] })],
    expect: "none HARDWARE_MISMATCH",
  },
  {
    title: "a device on the allow-list is offered what nobody else is",
    firmware: by({ percentageBasisPoints: 0, allowsDevice: true }),
    expect: "offer 2.0.0",
  },
  {
    title: "the allow-list is one of buckets alone: another channel stays another channel",
    device: { channel: "beta" },
    firmware: by({ allowsDevice: true }),
    expect: "none NOT_IN_ROLLOUT",
  },
  {
    title: "the allow-list is one of buckets alone: the filter counts",
    firmware: by({ allowsDevice: true, attributeFilter: { attribute: "region", eq: "eu" } }),
    expect: "none NOT_IN_ROLLOUT",
  },
  {
    title: "waiting, and taken out of the rollout's group: the offer is taken back",
    firmware: by({ groups: ["berlin"] }),
    records: [open("2.0.0", "offered")],
    expect: "cancel 2.0.0, then none NOT_IN_ROLLOUT",
  },
];

/** When and to how many a rollout offers. */
export const LIMIT_CASES: readonly Case[] = [
  { title: "in an open window it is offered", firmware: by(windowIn(-10, 10)), expect: "offer 2.0.0" },
  { title: "before the window it is not", firmware: by(windowIn(10, 20)), expect: "none WINDOW_CLOSED" },
  { title: "after the window it is not", firmware: by(windowIn(-20, -10)), expect: "none WINDOW_CLOSED" },
  {
    title: "the window is by the device's own clock",
    device: { timeZone: "Asia/Kolkata" },
    firmware: by(windowIn(-10, 10, "Asia/Kolkata")),
    expect: "offer 2.0.0",
  },
  {
    title: "the window is by the product's clock for a device that has none",
    product: { timeZone: "America/St_Johns" },
    firmware: by(windowIn(-10, 10, "America/St_Johns")),
    expect: "offer 2.0.0",
  },
  {
    title: "the device's clock counts more than the product's",
    product: { timeZone: "America/St_Johns" },
    device: { timeZone: "Asia/Kolkata" },
    firmware: by(windowIn(-10, 10, "America/St_Johns")),
    expect: "none WINDOW_CLOSED",
  },
  {
    title: "waiting, and the window has closed: the offer is kept for the next one",
    firmware: by(windowIn(-20, -10)),
    records: [open("2.0.0", "offered")],
    expect: "none WINDOW_CLOSED",
  },
  {
    title: "downloading, and the window has closed: the device may finish",
    firmware: by(windowIn(-20, -10)),
    records: [open("2.0.0", "downloading")],
    expect: "continue 2.0.0",
  },
  {
    title: "installing, and the window has closed: the device may finish",
    firmware: by(windowIn(-20, -10)),
    records: [open("2.0.0", "installing")],
    expect: "continue 2.0.0",
  },
  {
    title: "outside of its window the next best is offered",
    device: { runs: "1.0.0" },
    firmware: [...by(windowIn(10, 20)), running("1.5.0")],
    expect: "offer 1.5.0",
  },
  { title: "without a free place it is not offered", firmware: by(full), expect: "none CAP_REACHED" },
  {
    title: "with a free place it is",
    firmware: by({ ...full, maxConcurrent: 6 }),
    expect: "offer 2.0.0",
  },
  {
    title: "an open attempt has its place already",
    firmware: by(full),
    records: [open("2.0.0", "offered")],
    expect: "continue 2.0.0",
  },
  {
    title: "where all devices that it may ever reach have been reached, no further one is",
    firmware: by({ taken: { live: 0, granted: 9 }, maxTotal: 9 }),
    expect: "none CAP_REACHED",
  },
  {
    title: "a device that was reached is no further one",
    firmware: by({ taken: { live: 0, granted: 9 }, maxTotal: 9 }),
    records: [closed("2.0.0", [["failed", 60]])],
    expect: "offer 2.0.0",
  },
  {
    title: "a full rollout makes way for the next best",
    device: { runs: "1.0.0" },
    firmware: [...by(full), running("1.5.0")],
    expect: "offer 1.5.0",
  },
  {
    title: "once a threshold is reached nothing new is offered, paused already or not",
    firmware: by({ taken: { live: 0, granted: 9, thresholdReached: true } }),
    expect: "none ROLLOUT_PAUSED",
  },
  {
    title: "pause before window",
    firmware: by({ state: "paused", ...windowIn(10, 20) }),
    expect: "none ROLLOUT_PAUSED",
  },
  { title: "window before cap", firmware: by({ ...windowIn(10, 20), ...full }), expect: "none WINDOW_CLOSED" },
  {
    title: "cap before attempts",
    firmware: by(full),
    records: [closed("2.0.0", [["failed", 1]])],
    expect: "none CAP_REACHED",
  },
  {
    title: "attempts before the pause between them",
    firmware: by({ maxAttempts: 1 }),
    records: [closed("2.0.0", [["failed", 1]])],
    expect: "none ATTEMPTS_EXHAUSTED",
  },
  {
    title: "the product says how often a firmware is tried",
    product: { maxAttempts: 1 },
    firmware: by({}),
    records: [closed("2.0.0", [["failed", 900]])],
    expect: "none ATTEMPTS_EXHAUSTED",
  },
  {
    title: "the rollout says it in the product's place",
    product: { maxAttempts: 1 },
    firmware: by({ maxAttempts: 2 }),
    records: [closed("2.0.0", [["failed", 900]])],
    expect: "offer 2.0.0",
  },
  {
    title: "the product says how long the first pause is",
    product: { backoffSeconds: 3_600 },
    firmware: by({}),
    records: [closed("2.0.0", [["failed", 50]])],
    expect: "none BACKOFF",
  },
  {
    title: "the rollout says it in the product's place, and none is none",
    product: { backoffSeconds: 3_600 },
    firmware: by({ backoffSeconds: 0 }),
    records: [closed("2.0.0", [["failed", 0]])],
    expect: "offer 2.0.0",
  },
  {
    title: "the doubled pause is never longer than a day",
    product: { maxAttempts: 20, backoffSeconds: 40_000 },
    firmware: by({}),
    records: [
      closed("2.0.0", [
        ["failed", 9_000],
        ["failed", 6_000],
        ["failed", 1_441],
      ]),
    ],
    expect: "offer 2.0.0",
  },
];
