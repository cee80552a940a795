import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PEER = fileURLToPath(new URL("php/peer.php", import.meta.url));

/** Whether PHP with its Redis extension and symfony/lock (Debian: php-cli, php-redis, php-symfony-lock) is installed. */
export const hasPhpLock: boolean = (() => {
  try {
    const code = "require 'Symfony/Component/Lock/autoload.php'; exit(class_exists('Redis') ? 0 : 1);";
    execFileSync("php", ["-r", code], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

export interface PhpRequest {
  readonly do:
    | "acquire"
    | "wait"
    | "acquireRead"
    | "save"
    | "saveRead"
    | "refresh"
    | "release"
    | "isAcquired"
    | "token"
    | "adopt"
    | "write"
    | "read"
    | "writeMany"
    | "count"
    | "countByPromotion"
    | "look";
  readonly lock: string;
  /** The holder's name in the PHP process, where one process is to have several of a lock. */
  readonly as?: string;
  /** In seconds, as PHP has it. */
  readonly ttl?: number;
  /** In seconds; 300 by default, as PHP has it. */
  readonly initialTtl?: number;
  readonly token?: string;
  /** A serialised Key in base64. */
  readonly text?: string;
  readonly encoding?: "native" | "plain" | "json";
  readonly counter?: string;
  readonly times?: number;
}

/** A PHP process that locks on the same Redis with symfony/lock; on several servers at once with its CombinedStore. */
export class PhpPeer {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(...servers: readonly { readonly port: number }[]) {
    this.#process = spawn("php", [PEER, ...servers.map(({ port }) => String(port))], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    if (this.#process.stdout === null) throw new Error("php has no standard output");
    this.#answers = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** Sends one request and gives PHP's answer; ask for the next one after it. */
  async ask(request: PhpRequest): Promise<unknown> {
    this.#process.stdin?.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error("php ended");
    return JSON.parse(value);
  }

  async stop(): Promise<void> {
    this.#process.stdin?.end();
    if (this.#process.exitCode === null) await once(this.#process, "exit");
  }
}
