import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A service that runs in a process of its own. */
export interface ServiceProcess {
  readonly url: string;
  /** The end of what it has logged. */
  lastWords(): string;
  /** Ends the process: kindly, then for certain. */
  stop(): Promise<void>;
}

/** How {@link startService} starts it. */
export interface StartServiceOptions {
  /** The whole environment of the process, but for the address to listen on. */
  readonly environment: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

/** A new embedded database takes some seconds of initdb, on a slow machine many. */
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 10_000;

/** Starts the service as it is shipped and waits until it is ready. What it had logged is in the error if it isn't. */
export async function startService({ environment, signal }: StartServiceOptions): Promise<ServiceProcess> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  // The program beside this one, run in the same way: as it is shipped, or from the sources.
  const main = join(import.meta.dirname, `../main${extname(import.meta.filename)}`);
  const child = spawn(process.execPath, [...process.execArgv, main], {
    env: { ...environment, HOST: "127.0.0.1", PORT: String(port), PUBLIC_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lastWords = collectLog(child);
  const stop = () => end(child);
  try {
    await untilReady({ url, child, signal });
    return { url, lastWords, stop };
  } catch (error) {
    await stop();
    throw signal.aborted ? error : new Error(`${(error as Error).message} Its last words:\n${lastWords()}`);
  }
}

async function untilReady(options: { url: string; child: ChildProcess; signal: AbortSignal }): Promise<void> {
  const { url, child, signal } = options;
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    signal.throwIfAborted();
    if (hasEnded(child)) throw new Error(`The service ended before it was ready (exit code ${child.exitCode}).`);
    const ready = await fetch(`${url}/readyz`, { signal }).catch(() => undefined);
    await ready?.body?.cancel();
    if (ready?.ok) return;
    await sleep(50, undefined, { signal });
  }
  throw new Error(`The service was not ready after ${START_TIMEOUT_MS / 1000} seconds.`);
}

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(force);
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Keeps the end of what the process prints; it must be read, or the process stops at a full pipe. */
function collectLog(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-4000);
    });
  }
  return () => text;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address !== "object" || address === null) throw new Error("The system gave no port.");
  return address.port;
}
