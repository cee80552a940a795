import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The real `main.ts` in a process of its own. */
export interface SpawnedService extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** All that it has written to standard output so far: its log. */
  readonly log: () => string;
  /** All that it has written to standard error so far. */
  readonly errors: () => string;
  /** Resolves with the exit code, or the name of the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
  kill(signal: NodeJS.Signals): void;
}

/** How {@link spawnService} starts it. */
export interface SpawnOptions {
  /** Added to an environment that holds nothing but PATH and a free port. */
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

/** A key that signs URLs, for services on PostgreSQL. */
export const TEST_SIGNING_KEY = Buffer.alloc(32, 7).toString("base64");

/** An operator key for services on PostgreSQL. */
export const TEST_OPERATOR_KEY = "operator-key-of-the-tests-0123456789";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Starts the service and waits until it listens. Rejects with what it has written where it ends before that. */
export async function spawnService(options: SpawnOptions = {}): Promise<SpawnedService> {
  const process_ = await spawnMain(options);
  const url = await new Promise<string>((resolve, reject) => {
    const look = (): void => {
      const address = /"address":"([^"]+)".*"msg":"listening"/.exec(process_.log())?.[1];
      if (address !== undefined) resolve(address);
    };
    process_.child.stdout?.on("data", look);
    process_.exited.then((code) => {
      reject(new Error(`The service ended with ${code} before it listened:\n${process_.log()}\n${process_.errors()}`));
    });
  });
  return {
    url,
    ...process_,
    async [Symbol.asyncDispose]() {
      process_.kill("SIGKILL");
      await process_.exited;
      await process_.remove();
    },
  };
}

/** Runs the service's command line to its end. */
export async function runMain(options: SpawnOptions): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const process_ = await spawnMain(options);
  const code = await process_.exited;
  await process_.remove();
  return { code, stdout: process_.log(), stderr: process_.errors() };
}

async function spawnMain({ env = {}, args = [] }: SpawnOptions) {
  const folder = await mkdtemp(join(tmpdir(), "ota-service-"));
  const child = spawn(process.execPath, ["--conditions=@ota/source", "--disable-warning=ExperimentalWarning", MAIN, ...args], {
    env: {
      PATH: process.env["PATH"],
      PORT: "0",
      OTA_DATA_DIR: folder,
      ...("DATABASE_URL" in env ? { OTA_URL_SIGNING_KEY: TEST_SIGNING_KEY, OTA_OPERATOR_KEY: TEST_OPERATOR_KEY } : {}),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log = collected(child, "stdout");
  const errors = collected(child, "stderr");
  const exited = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return {
    child,
    pid: child.pid ?? 0,
    log,
    errors,
    exited,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

function collected(child: ChildProcess, stream: "stdout" | "stderr"): () => string {
  let text = "";
  child[stream]?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text;
}
