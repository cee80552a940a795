import { setTimeout as sleep } from "node:timers/promises";
import type { CheckSender, StormAnswer } from "../check-storm.ts";
import type { Ledger } from "./ledger.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { FleetDevice } from "./storm-fleet.ts";

/** What all devices of a storm share. */
export interface StormContext {
  readonly sender: CheckSender;
  readonly ledger: Ledger;
  /** Where one of the processes is, or was. */
  readonly urlOf: (random: SeededRandom) => string;
  /** How long a second of `Retry-After` is: 1000, or less where the run has to be short. */
  readonly retrySecondMs: number;
}

/** How often a device sends a report again that was not answered. */
const MAX_RETRIES = 10;

/** The first pause after a lost connection, which doubles up to the longest: nobody has said how long to wait. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;

/** How a device works on an offer, in order; the last step is how it ends. */
const STEPS = ["offered", "downloading", "downloaded", "installing", "installed"];

/** One device, which does what real ones do: asks, works on what it was offered, and reports until it is answered. */
export class StormDevice {
  readonly #device: FleetDevice;
  readonly #random: SeededRandom;
  readonly #name: string;
  readonly #context: StormContext;
  #version = "1.0.0";
  #reports = 0;

  constructor(input: {
    readonly device: FleetDevice;
    readonly name: string;
    readonly random: SeededRandom;
    readonly context: StormContext;
  }) {
    this.#device = input.device;
    this.#name = input.name;
    this.#random = input.random;
    this.#context = input.context;
  }

  /**
   * Asks a number of times at once, works on what it is offered, and keeps to `Retry-After` where it is not answered. At
   * times it falls silent in the middle: it then goes on when it has asked again.
   */
  async round(checks: number): Promise<void> {
    const answers = await Promise.all(Array.from({ length: checks }, () => this.#check()));
    const answered = answers.filter(({ status }) => status === 200);
    if (answered.length === 0) {
      await this.#pause(answers[0], 0);
      return;
    }
    const stopping = answered.find(({ body }) => body.stopping !== undefined);
    if (stopping !== undefined) await this.#report(stopping.body.stopping.id, { state: "cancelled" });
    const newest = answered
      .filter(({ body }) => body.decision === "update")
      .sort((a, b) => b.body.attempt.id - a.body.attempt.id)[0];
    if (newest !== undefined) await this.#work(newest.body);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever JSON the service sends
  async #work({ attempt, firmware }: any): Promise<void> {
    for (const state of STEPS.slice(Math.max(1, STEPS.indexOf(attempt.state) + 1), -1)) {
      if (this.#random.unit() < 0.05) return;
      const progress = { state, progressPercent: this.#random.below(101) };
      if ((await this.#report(attempt.id, progress)) !== "stored") return;
    }
    if (this.#random.unit() < 0.25) {
      const code = this.#random.below(3);
      await this.#report(attempt.id, { state: "failed", code, message: `block ${this.#random.below(999)} is bad` });
      return;
    }
    // It runs the new version from here on, whether its last word arrives or not.
    this.#version = firmware.version;
    const told = this.#random.unit() < 0.5 ? { version: this.#version } : {};
    await this.#report(attempt.id, { state: "succeeded", ...told });
    if (this.#device.confirmBy === "version" && this.#random.unit() < 0.8) await this.#check();
  }

  async #check(): Promise<StormAnswer> {
    const { sender, ledger, urlOf } = this.#context;
    const json = { version: this.#version };
    const answer = await sender.post(urlOf(this.#random), { path: "/v1/check", token: this.#device.token, json });
    ledger.check(answer);
    return answer;
  }

  async #report(
    attemptId: number,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<"stored" | "closed" | "given-up"> {
    const { sender, ledger, urlOf } = this.#context;
    this.#reports += 1;
    const mark = `${this.#name}/${this.#reports}`;
    const request = {
      path: `/v1/attempts/${attemptId}/reports`,
      token: this.#device.token,
      json: { ...fields, details: [mark] },
    };
    for (let sent = 1; sent <= 1 + MAX_RETRIES; sent += 1) {
      const answer = await sender.post(urlOf(this.#random), request);
      ledger.report(answer);
      const outcome = answer.status === 200 ? "stored" : answer.status === 409 ? "closed" : undefined;
      if (outcome !== undefined) {
        ledger.reports.push({ mark, attemptId, outcome, sent });
        return outcome;
      }
      await this.#pause(answer, sent - 1);
    }
    ledger.reports.push({ mark, attemptId, outcome: "given-up", sent: 1 + MAX_RETRIES });
    return "given-up";
  }

  async #pause(answer: StormAnswer | undefined, refusals: number): Promise<void> {
    const told = answer?.retryAfterSeconds;
    const own = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** refusals) * (0.5 + this.#random.unit());
    await sleep(told === undefined ? own : told * this.#context.retrySecondMs);
  }
}
