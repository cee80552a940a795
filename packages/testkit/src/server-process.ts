import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { forget, killWithUs } from "./process-guard.ts";

/** How long a server may take until it answers; generous, for machines under load. */
const startTimeoutMs = 30_000;
/** PostgreSQL itself waits 5 s for its processes before it kills them. */
const stopTimeoutMs = 10_000;
const keptOutputLines = 40;

/** What {@link ServerProcess.start} runs. */
export interface ServerCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Environment variables besides those of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** The OS user to run as; the own user by default. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Resolves to true once the server answers; asked every few milliseconds, with the output so far. */
  readonly isReady: (server: { readonly pid: number; readonly output: string }) => Promise<boolean> | boolean;
}

/** A server started by this process and killed with it. */
export class ServerProcess {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #command: ServerCommand;
  #output: string[] = [];

  private constructor(command: ServerCommand, child: ChildProcess, pid: number) {
    this.#command = command;
    this.#child = child;
    this.pid = pid;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8");
      stream?.on("data", (text: string) => this.#keep(text));
      if (stream instanceof Socket) stream.unref();
    }
  }

  /**
   * Starts the server and waits until it answers.
   * @throws Error with the server's last output when it ends before, or does not answer within 30 s.
   */
  static async start(command: ServerCommand): Promise<ServerProcess> {
    const child = spawn(command.file, command.args, {
      cwd: command.cwd,
      // Out of the terminal's process group: Ctrl-C must end the tests, not the servers under them.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, LC_ALL: "C", ...command.env },
      ...command.user,
    });
    await once(child, "spawn");
    if (child.pid === undefined) throw new Error(`${command.file} was started without a process id`);
    killWithUs(child.pid);
    child.once("exit", () => forget(child.pid ?? 0));
    child.unref();
    const server = new ServerProcess(command, child, child.pid);
    try {
      await server.#untilReady();
    } catch (error) {
      await server.kill();
      throw error;
    }
    return server;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Sends a signal. @throws Error when the process has ended. */
  signal(signal: NodeJS.Signals): void {
    if (!this.#child.kill(signal))
      throw new Error(`the server does not run, so it cannot get ${signal}: restart it first`);
  }

  /** Sends SIGKILL and waits until the process has ended. Does nothing when it has ended already. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  /** Sends `signal` and waits until the process has ended, by SIGKILL after 10 s. Does nothing when it has ended already. */
  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.hasEnded) return;
    this.#child.ref();
    const exit = once(this.#child, "exit");
    this.#child.kill(signal);
    const impatient = setTimeout(() => this.#child.kill("SIGKILL"), stopTimeoutMs);
    await exit;
    clearTimeout(impatient);
  }

  async #untilReady(): Promise<void> {
    const giveUpAt = performance.now() + startTimeoutMs;
    while (!(await this.#command.isReady({ pid: this.pid, output: this.#output.join("") }))) {
      if (this.hasEnded) throw new Error(`${this.#command.file} ended while starting:\n${this.#output.join("")}`);
      if (performance.now() > giveUpAt) {
        throw new Error(`${this.#command.file} did not answer within ${startTimeoutMs} ms:\n${this.#output.join("")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  #keep(text: string): void {
    this.#output = [...this.#output, text].slice(-keptOutputLines);
  }
}
