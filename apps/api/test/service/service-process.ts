import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The real `main.ts` in a process of its own, which ends with this process at the latest. */
export interface ServiceProcess {
  readonly pid: number;
  /** All that it has written to standard output so far: its log. */
  readonly log: () => string;
  /** All that it has written to standard error so far. */
  readonly errors: () => string;
  /** Resolves with the exit code, or the name of the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
  kill(signal: NodeJS.Signals): void;
  /** Kills it and removes its folder. */
  dispose(): Promise<void>;
}

/** A service that listens. */
export interface ListeningService extends ServiceProcess {
  readonly url: string;
}

/** How a service is started. */
export interface SpawnOptions {
  /** Added to an environment that holds PATH, a free port and a folder of its own. */
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** JavaScript that runs in the process before the service does. */
  readonly preload?: string;
}

/** An operator key that services on PostgreSQL know from their environment. */
export const TEST_OPERATOR_KEY = "operator-key-of-the-tests-0123456789";

/** The key by which services on PostgreSQL sign URLs. */
export const TEST_SIGNING_KEY = Buffer.alloc(32, 7).toString("base64");

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Ends the process when its standard input does, which is when the test's process has ended, however it did. */
const END_WITH_PARENT = 'process.stdin.on("end", () => process.kill(process.pid, "SIGKILL")).resume().unref();';

/** Starts the service and waits until it listens. Rejects with what it has written where it ends before that. */
export async function startServiceProcess(options: SpawnOptions = {}): Promise<ListeningService> {
  const service = await spawnMain(options);
  const url = await new Promise<string>((resolve, reject) => {
    const look = (): void => {
      const address = /"address":"([^"]+)".*"msg":"listening"/.exec(service.log())?.[1];
      if (address !== undefined) resolve(address);
    };
    service.child.stdout?.on("data", look);
    void service.exited.then((code) => {
      reject(new Error(`The service ended with ${code} before it listened:\n${service.log()}\n${service.errors()}`));
    });
  });
  return { ...service, url };
}

/** Runs the service's command line to its end. */
export async function runMain(options: SpawnOptions): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const service = await spawnMain(options);
  const code = await service.exited;
  await service.dispose();
  return { code, stdout: service.log(), stderr: service.errors() };
}

async function spawnMain({
  env = {},
  args = [],
  preload = "",
}: SpawnOptions): Promise<ServiceProcess & { child: ChildProcess }> {
  const folder = await mkdtemp(join(tmpdir(), "ota-service-"));
  const child = spawn(
    process.execPath,
    ["--conditions=@ota/source", "--import", moduleOf(END_WITH_PARENT + preload), MAIN, ...args],
    {
      env: {
        PATH: process.env["PATH"],
        NODE_NO_WARNINGS: "1",
        PORT: "0",
        OTA_DATA_DIR: folder,
        ...("DATABASE_URL" in env
          ? { OTA_URL_SIGNING_KEY: TEST_SIGNING_KEY, OTA_OPERATOR_KEY: TEST_OPERATOR_KEY }
          : {}),
        ...env,
      },
      stdio: ["pipe", "pipe", "pipe"],
    },
  );
  const exited = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return {
    child,
    pid: child.pid ?? 0,
    log: collected(child, "stdout"),
    errors: collected(child, "stderr"),
    exited,
    kill: (signal) => void child.kill(signal),
    async dispose() {
      child.kill("SIGKILL");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function moduleOf(script: string): string {
  return `data:text/javascript,${encodeURIComponent(script)}`;
}

function collected(child: ChildProcess, stream: "stdout" | "stderr"): () => string {
  let text = "";
  child[stream]?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text;
}
