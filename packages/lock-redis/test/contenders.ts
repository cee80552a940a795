import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ContendRequest, Turn } from "./fixtures/contend.ts";

const WORKER = fileURLToPath(new URL("fixtures/contend.ts", import.meta.url));

/** A process of its own whose waiters take a lock again and again. */
export class Contender {
  readonly process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(request: ContendRequest) {
    const args = ["--conditions=@ota/source", WORKER, JSON.stringify(request)];
    this.process = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    if (this.process.stdout === null) throw new Error("the process has no standard output");
    this.#lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  /** One that is connected and waits to be told to go. */
  static async start(request: ContendRequest): Promise<Contender> {
    const contender = new Contender(request);
    await contender.#lines.next();
    return contender;
  }

  go(): void {
    this.process.stdin?.write("go\n");
  }

  /** Its turns, once it has ended by itself. */
  async turns(): Promise<readonly Turn[]> {
    const { value } = await this.#lines.next();
    if (this.process.exitCode === null) await once(this.process, "exit");
    return JSON.parse(value);
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "exit");
  }
}

/** Lets them go at once and gives the turns of all, in the order in which they got the lock. */
export async function contend(contenders: readonly Contender[]): Promise<readonly Turn[]> {
  for (const contender of contenders) contender.go();
  const turns = await Promise.all(contenders.map((contender) => contender.turns()));
  return turns.flat().sort((one, other) => one.acquired - other.acquired);
}

/** Whether no lease began before the one before it had ended. */
export function areDisjoint(turns: readonly Turn[]): boolean {
  return turns.every((turn, index) => index === 0 || turn.acquired >= (turns[index - 1] as Turn).released);
}

/** Jain's index: 1 when all got the lock equally often, 1 / n when one of n got it alone. */
export function fairness(turns: readonly Turn[], waiters: number): number {
  const counts = new Map<string, number>();
  for (const { waiter } of turns) counts.set(waiter, (counts.get(waiter) ?? 0) + 1);
  const squares = [...counts.values()].reduce((sum, count) => sum + count * count, 0);
  return turns.length ** 2 / (waiters * squares);
}
