/** A counter on the terminal: one line that is rewritten; elsewhere a line for each quarter. */
export class Progress {
  readonly #name: string;
  readonly #total: number;
  readonly #startedAtMs = performance.now();
  #done = 0;
  #shownAtMs = 0;

  constructor(name: string, total: number) {
    this.#name = name;
    this.#total = total;
  }

  step(): void {
    this.#done += 1;
    if (process.stdout.isTTY) this.#rewrite();
    else if (Math.floor((4 * this.#done) / this.#total) > Math.floor((4 * (this.#done - 1)) / this.#total)) {
      console.log(this.#line());
    }
  }

  /** Leaves the last count on the terminal. */
  end(): void {
    if (process.stdout.isTTY) process.stdout.write(`\r${this.#line()}\n`);
  }

  /** A terminal is slow: it is written to ten times a second at the most. */
  #rewrite(): void {
    if (performance.now() - this.#shownAtMs < 100) return;
    this.#shownAtMs = performance.now();
    process.stdout.write(`\r${this.#line()}`);
  }

  #line(): string {
    const seconds = ((performance.now() - this.#startedAtMs) / 1000).toFixed(1);
    return `${this.#name}: ${this.#done.toLocaleString("en")} of ${this.#total.toLocaleString("en")} in ${seconds} s`;
  }
}
