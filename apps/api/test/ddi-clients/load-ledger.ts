import { quantile } from "../service/check-storm.ts";
import type { DdiReceived } from "./ddi-sender.ts";

/** What a device knows of its last word on an action. */
export interface FinalStatus {
  /** The line that it carries, by which it is found in the history. */
  readonly mark: string;
  readonly attemptId: number;
  readonly state: "succeeded" | "failed";
  /** Whether it was answered 2xx before the device gave up. */
  readonly isAnswered: boolean;
}

/** What all devices have seen. */
export class LoadLedger {
  readonly finals: FinalStatus[] = [];
  readonly #kinds = new Map<string, number>();
  readonly #durations: number[] = [];
  #offers = 0;

  /** How many answers there were. */
  get requests(): number {
    return this.#durations.length;
  }

  /** How many devices have been shown a deployment. */
  get offers(): number {
    return this.#offers;
  }

  offered(): void {
    this.#offers += 1;
  }

  /** `what` is the resource: `poll`, `feedback`, …. */
  note(what: string, { status, durationMs }: DdiReceived): void {
    this.#durations.push(durationMs);
    const kind = `${what}: ${status === 0 ? "connection lost" : status}`;
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1);
  }

  /** The kinds of answers that match, with how many there were of each. */
  kinds(wanted: RegExp): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#kinds].filter(([kind]) => wanted.test(kind)).sort());
  }

  /** What there was of each kind, and how long the answers took. */
  table(): readonly string[] {
    const [p50, p99, max] = [0.5, 0.99, 1].map((part) => Math.round(quantile(this.#durations, part)));
    return [
      ...Object.entries(this.kinds(/./)).map(([kind, count]) => `${kind.padEnd(32)} ${String(count).padStart(8)}`),
      `answers took: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`,
    ];
  }
}
