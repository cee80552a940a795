import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "@ota/testkit";

/** V8 drops code and caches of a process that idles, which would favour whoever is measured most often. */
const KEEP_WARM = ["--no-flush-bytecode", "--no-memory-reducer"];

/** The key by which the benchmark sets up its fleets. */
export const SERVICE_OPERATOR_KEY = "operator-key-of-the-benchmark-0123456789";

/** What contenders work on. */
export interface Backends {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** The service ties it to the database. */
  readonly artifactDirectory: string;
}

/** The service's package, built, and what it works on. */
export interface ServicePlace extends Backends {
  /** The folder of `apps/api`. */
  readonly folder: string;
}

/** A process that answers HTTP on this machine. */
export interface ServerProcess extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
}

/** Starts one of the floors. */
export async function startFloor(file: string, { databaseUrl, redisUrl }: Backends): Promise<ServerProcess> {
  const child = spawn(
    process.execPath,
    ["--conditions=@ota/source", ...KEEP_WARM, fileURLToPath(new URL(`./floors/${file}`, import.meta.url))],
    {
      env: { NODE_ENV: "production", NODE_NO_WARNINGS: "1", DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    },
  );
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the floor ${file} ended with ${code} before it listened`);
  });
  const [{ port }] = (await Promise.race([once(child, "message"), ended])) as [{ port: number }];
  ended.catch(() => {});
  return serverProcess(child, port);
}

/** How the service is started. */
export interface ServiceOptions extends ServicePlace {
  /** Whether V8 keeps what an idle process would drop; memory is measured without. @default false */
  readonly keepWarm?: boolean;
  /** @default the service's own */
  readonly lastSeenFlushMs?: number;
}

/** Starts the service by the command of its `start` script, with its own defaults; its log goes to /dev/null. */
export async function startService(options: ServiceOptions): Promise<ServerProcess> {
  const { scripts } = JSON.parse(readFileSync(join(options.folder, "package.json"), "utf8"));
  const [command, ...args] = (scripts.start as string).split(" ");
  if (command !== "node") throw new Error(`apps/api is started by ${command}, which this benchmark does not know`);
  const port = await freePort();
  const child = spawn(process.execPath, [...(options.keepWarm ? KEEP_WARM : []), ...args], {
    cwd: options.folder,
    env: {
      NODE_ENV: "production",
      PORT: String(port),
      DATABASE_URL: options.databaseUrl,
      REDIS_URL: options.redisUrl,
      OTA_ARTIFACT_DIR: options.artifactDirectory,
      OTA_OPERATOR_KEY: SERVICE_OPERATOR_KEY,
      OTA_URL_SIGNING_KEY: Buffer.alloc(32, 7).toString("base64"),
      ...(options.lastSeenFlushMs === undefined ? {} : { OTA_LAST_SEEN_FLUSH_MS: String(options.lastSeenFlushMs) }),
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const server = serverProcess(child, port);
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error("the service has not started; it says above why");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return server;
}

async function answers(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/healthz`)).ok;
  } catch {
    return false;
  }
}

const running = new Set<ChildProcess>();
// They must not outlive this process, whose end may be an error.
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
process.once("SIGINT", () => process.exit(130)).once("SIGTERM", () => process.exit(143));

function serverProcess(child: ChildProcess, port: number): ServerProcess {
  const { pid } = child;
  if (pid === undefined) throw new Error("a server was started without a process id");
  running.add(child);
  return {
    pid,
    port,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) {
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }
      running.delete(child);
    },
  };
}
