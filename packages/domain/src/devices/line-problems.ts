import { OtaError } from "../errors.ts";

/** What can be wrong with a line of a list. Stable: a client may rely on them. */
export const LINE_PROBLEM_CODES = [
  "INVALID_LINE",
  "LINE_TOO_LONG",
  "UNKNOWN_FIELD",
  "INVALID_FIELD",
  "DUPLICATE",
  "ALREADY_EXISTS",
  "TOO_MANY",
] as const;
export type LineProblemCode = (typeof LINE_PROBLEM_CODES)[number];

/** One thing that is wrong with a line. */
export interface LineProblem {
  /** Counted from 1, a header among them. */
  readonly line: number;
  /** `null`: the line as a whole. */
  readonly field: string | null;
  readonly code: LineProblemCode;
  /** For people; it does not repeat the value. */
  readonly message: string;
}

/** Enough to see what is wrong with a list, and small enough for one answer. */
const MAX_KEPT = 1_000;

/** What is wrong with a list, as it is found: the first problems, and how many there are. */
export class LineProblems {
  readonly #kept: LineProblem[] = [];
  #total = 0;

  add(problem: LineProblem): void {
    this.#total += 1;
    if (this.#kept.length < MAX_KEPT) this.#kept.push(problem);
  }

  get areThere(): boolean {
    return this.#total > 0;
  }

  /** Throws LINES_INVALID where there is any, in the order of the lines. */
  throwIfAny(): void {
    if (this.#total === 0) return;
    const errors = this.#kept.toSorted((one, other) => one.line - other.line);
    throw new OtaError(
      "LINES_INVALID",
      `The list has ${this.#total} ${this.#total === 1 ? "problem" : "problems"}. Nothing was registered.`,
      {
        details: { errors, errorsTotal: this.#total },
      },
    );
  }
}
