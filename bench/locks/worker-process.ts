import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ContenderName } from "./contenders.ts";
import type { ContentionResult, PairsResult, Task } from "./worker.ts";

interface Results {
  readonly pairs: PairsResult;
  readonly contention: ContentionResult;
  readonly burst: number;
  readonly memory: number;
}

/** A process that runs one contender, kept for the whole benchmark so that it stays warm. */
export class WorkerProcess implements AsyncDisposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(contender: ContenderName, redisUrl: string): Promise<WorkerProcess> {
    const child = fork(fileURLToPath(new URL("./worker.ts", import.meta.url)), [contender, redisUrl], {
      // V8 drops code and caches of a process that idles, which would favour whoever is measured most often.
      execArgv: ["--conditions=@ota/source", "--expose-gc", "--no-flush-bytecode", "--no-memory-reducer"],
    });
    await answerOf(child, contender);
    return new WorkerProcess(child);
  }

  async run<Kind extends keyof Results>(task: Task & { readonly kind: Kind }): Promise<Results[Kind]> {
    const answer = answerOf(this.#child, task.kind);
    this.#child.send(task);
    return (await answer) as Results[Kind];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.send({ kind: "close" } satisfies Task);
    await ended;
  }
}

async function answerOf(child: ChildProcess, what: string): Promise<unknown> {
  const failed = new AbortController();
  try {
    const exit = once(child, "exit", failed).then(([code]) => {
      throw new Error(`the worker for "${what}" ended with ${code} before it answered`);
    });
    const [answer] = await Promise.race([once(child, "message", failed), exit]);
    return answer;
  } finally {
    failed.abort();
  }
}
