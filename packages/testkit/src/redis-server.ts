import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { redisServerPath } from "./binaries.ts";
import { fakeTime, type ServerClock } from "./fake-time.ts";
import { launchOnFreePort } from "./free-port.ts";
import { temporaryDirectory } from "./process-guard.ts";
import { ServerProcess } from "./server-process.ts";

const run = promisify(execFile);
const host = "127.0.0.1";

/** How {@link startRedis} starts the server. */
export interface StartRedisOptions {
  /**
   * Further redis-server arguments, as on its command line: `["--appendonly", "yes"]`. They win over the defaults
   * (nothing saved to disk, DEBUG allowed).
   * @default []
   */
  readonly args?: readonly string[];
  /**
   * The TCP port.
   * @default a free one
   */
  readonly port?: number;
  /**
   * Whether the server's wall clock can be set by {@link RedisServer.setClock}, which makes it slower (see
   * `hasFakeTime`). Its timeouts go by the monotonic clock, which stays as it is.
   * @default false
   */
  readonly adjustableClock?: boolean;
}

/** A private redis-server on 127.0.0.1, with its own empty data folder. It ends with this process at the latest. */
export interface RedisServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `redis://127.0.0.1:<port>` */
  readonly url: string;
  /** The id of the running process; another one after {@link restart}. */
  readonly pid: number;
  /** Stops the process where it is (SIGSTOP): connections stay open and are accepted, nothing is answered. */
  pause(): void;
  /** Lets a paused process go on (SIGCONT): what was sent meanwhile is executed. */
  resume(): void;
  /** Ends the process at once (SIGKILL), without saving; resolves when it has ended. */
  kill(): Promise<void>;
  /**
   * Starts the server again on the same port and data folder, after killing it if it runs. Data survive only where
   * `args` turned persistence on.
   */
  restart(): Promise<void>;
  /** Kills the server and removes its data folder. May be called more than once. */
  stop(): Promise<void>;
  /**
   * Sets the server's wall clock, at once and across {@link restart}.
   * @throws Error when the server was not started with `adjustableClock`.
   */
  setClock(clock: ServerClock): void;
  /**
   * Runs redis-cli against the server and returns what it printed, without the last line break.
   * @throws Error when the command cannot be run or redis-cli exits with a failure; an error reply is returned as text.
   */
  cli(...args: string[]): Promise<string>;
}

/**
 * Starts a private redis-server and waits until it answers; about 50 ms, so each test file may have its own.
 * @throws Error when no redis-server is installed (see `hasRedis`) or it does not start; its output is in the message.
 */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  return launchRedis({ ...options, isSentinel: false });
}

/** {@link startRedis}, or a Sentinel that watches nothing yet. */
export async function launchRedis(options: StartRedisOptions & { readonly isSentinel: boolean }): Promise<RedisServer> {
  const { args = [], isSentinel } = options;
  if (redisServerPath === undefined) {
    throw new Error("redis-server was not found: apt-get install -y redis-server, or set REDIS_SERVER_BIN");
  }
  const binary = redisServerPath;
  const directory = temporaryDirectory("redis");
  const clock = options.adjustableClock === true ? fakeTime(join(directory, "clock")) : undefined;
  // A Sentinel keeps its knowledge in its configuration file, which must therefore exist.
  const file = join(directory, "sentinel.conf");
  if (isSentinel) await writeFile(file, "");
  const launch = (port: number) => {
    const own = ["--bind", host, "--port", String(port), "--dir", directory];
    const defaults = ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"];
    return ServerProcess.start({
      file: binary,
      args: isSentinel ? [file, ...own, ...args, "--sentinel"] : [...own, ...defaults, ...args],
      cwd: directory,
      env: clock?.env,
      isReady: ({ pid }) => answers(port, pid),
    });
  };

  const { port, started } =
    options.port === undefined
      ? await launchOnFreePort(launch)
      : { port: options.port, started: await launch(options.port) };
  let running = started;
  const server: RedisServer = {
    host,
    port,
    url: `redis://${host}:${port}`,
    get pid() {
      return running.pid;
    },
    pause: () => running.signal("SIGSTOP"),
    resume: () => running.signal("SIGCONT"),
    kill: () => running.kill(),
    async restart() {
      await running.kill();
      running = await launch(port);
    },
    async stop() {
      await running.kill();
      await rm(directory, { recursive: true, force: true });
    },
    setClock(setting) {
      if (clock === undefined) throw new Error("the server's clock is the machine's: start it with adjustableClock");
      clock.set(setting);
    },
    async cli(...command) {
      const besides = join(dirname(binary), "redis-cli");
      const { stdout } = await run(existsSync(besides) ? besides : "redis-cli", [
        "-h",
        host,
        "-p",
        String(port),
        ...command,
      ]);
      return stdout.replace(/\n$/, "");
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
    },
  };
  return server;
}

/**
 * True when the server with this `pid` answers. Another process may have taken the port in between, so the answer's own
 * process id is compared. LOADING is no answer yet; other errors are (NOAUTH, where `args` ask for a password).
 */
function answers(port: number, pid: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const settle = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    let reply = "";
    socket.setTimeout(1000, () => settle(false));
    socket.once("error", () => settle(false)); // not listening yet
    socket.once("close", () => settle(false));
    socket.on("data", (data) => {
      reply += data.toString();
      if (reply.startsWith("-")) settle(!reply.startsWith("-LOADING"));
      const answeringPid = /process_id:(\d+)\r/.exec(reply)?.[1];
      if (answeringPid !== undefined) settle(Number(answeringPid) === pid);
    });
    socket.write("INFO server\r\n");
  });
}
