import { quantile, type StormAnswer } from "../check-storm.ts";

/** What a device knows of one report that it has sent. */
export interface SentReport {
  /** The mark that it carries, by which it is found in the history. */
  readonly mark: string;
  readonly attemptId: number;
  /** `given-up`: sent as often as a device does, and never answered. */
  readonly outcome: "stored" | "closed" | "given-up";
  readonly sent: number;
}

/** What the devices of a storm have seen: everything that is compared with the database afterwards. */
export class Ledger {
  readonly reports: SentReport[] = [];
  /** Answers that no device should ever get. */
  readonly wrong: string[] = [];
  readonly #kinds = new Map<string, number>();
  readonly #durations: number[] = [];
  #checks = 0;
  #answeredChecks = 0;

  /** The checks that were sent. */
  get checks(): number {
    return this.#checks;
  }

  /** Those that were answered with a decision. */
  get answeredChecks(): number {
    return this.#answeredChecks;
  }

  check(answer: StormAnswer): void {
    this.#checks += 1;
    if (answer.status === 200) {
      this.#answeredChecks += 1;
      this.#durations.push(answer.durationMs);
    }
    this.#note("check", answer);
  }

  report(answer: StormAnswer): void {
    this.#note("report", answer);
  }

  #note(what: "check" | "report", { status, body }: StormAnswer): void {
    const word = body?.code ?? body?.reason ?? body?.effect ?? body?.decision;
    const kind = status === 0 ? `${what}: connection lost` : `${what}: ${status} ${word}`;
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1);
    if (!isAllowed(what, { status, word })) this.wrong.push(kind);
  }

  /** How many there were of each kind of answer, and how long the answered checks took. */
  table(): readonly string[] {
    const kinds = [...this.#kinds].sort(([a], [b]) => (a < b ? -1 : 1));
    const [p50, p99, max] = [0.5, 0.99, 1].map((part) => Math.round(quantile(this.#durations, part)));
    return [
      ...kinds.map(([kind, count]) => `${kind.padEnd(44)} ${String(count).padStart(8)}`),
      `answered checks took: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`,
    ];
  }
}

/** 409 is right for progress on an attempt that is over; that it was over is looked up in the history afterwards. */
function isAllowed(what: "check" | "report", { status, word }: { status: number; word: unknown }): boolean {
  if ((status >= 200 && status < 300) || [0, 429, 503].includes(status)) return true;
  return what === "report" && status === 409 && word === "ATTEMPT_CLOSED";
}
