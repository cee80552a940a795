import { rm } from "node:fs/promises";
import { join } from "node:path";
import { launchOnFreePort } from "./free-port.ts";
import { clusterDirectory, copyCluster, initCluster, postgresUser, requirePostgres } from "./postgres-cluster.ts";
import { forget, killWithUs } from "./process-guard.ts";
import { childrenOf, signalIfRunning, untilEnded } from "./process-tree.ts";
import { ServerProcess } from "./server-process.ts";
import { createDatabase } from "./sql.ts";
import { providedByRun } from "./vitest-run.ts";

const host = "127.0.0.1";

/** How {@link startPostgres} starts the server. */
export interface StartPostgresOptions {
  /**
   * Server settings, as in postgresql.conf: `{ log_statement: "all" }`. They win over the defaults
   * (fsync off, 200 connections, pg_stat_statements preloaded).
   * @default {}
   */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A private PostgreSQL server on 127.0.0.1, superuser `postgres`, no password. It ends with this process at the latest. */
export interface PostgresServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** The id of the running postmaster; another one after {@link restart}. */
  readonly pid: number;
  /**
   * The connection URL of a database.
   * @default "postgres"
   */
  url(database?: string): string;
  /** Creates a fresh empty database and returns its URL. */
  createDatabase(): Promise<string>;
  /** Stops all processes of the server where they are (SIGSTOP): connections stay open, nothing is answered. */
  pause(): void;
  /** Lets a paused server go on (SIGCONT): what was sent meanwhile is executed. */
  resume(): void;
  /** Ends all processes of the server at once (SIGKILL); resolves when they have ended. */
  kill(): Promise<void>;
  /** Starts the server again on the same port and data, after killing it if it runs. Committed data survive. */
  restart(): Promise<void>;
  /** Kills the server and removes its data. May be called more than once. */
  stop(): Promise<void>;
}

/**
 * Starts a private PostgreSQL server and waits until it accepts connections: about half a second in a vitest run, which
 * holds an initialised cluster to copy, 1–3 s elsewhere.
 * When this process runs as root, the server runs as the OS user `postgres`, since PostgreSQL refuses root.
 * @throws Error when PostgreSQL is not installed (see `hasPostgresBinaries`) or does not start; its output is in the message.
 */
export async function startPostgres(options: StartPostgresOptions = {}): Promise<PostgresServer> {
  return startPostgresFrom({ ...options, template: (await providedByRun())?.template });
}

/** {@link startPostgres} with the folder of an initialised cluster to copy, where there is one. */
export async function startPostgresFrom(
  options: StartPostgresOptions & { readonly template: string | undefined },
): Promise<PostgresServer> {
  const { template } = options;
  const directory = await clusterDirectory();
  if (template === undefined) await initCluster(directory);
  else await copyCluster({ from: template, to: directory });

  const launch = (port: number) => {
    const settings = { ...defaultSettings(directory, port), ...options.settings };
    return ServerProcess.start({
      file: join(requirePostgres(), "postgres"),
      args: ["-D", join(directory, "data"), ...Object.entries(settings).flatMap((each) => ["-c", each.join("=")])],
      cwd: directory,
      user: postgresUser(),
      isReady: ({ output }) => output.includes("database system is ready to accept connections"),
    });
  };
  const { port, started } = await launchOnFreePort(launch);
  let running = started;
  let paused: number[] = [];
  let databaseCount = 0;
  const server: PostgresServer = {
    host,
    port,
    get pid() {
      return running.pid;
    },
    url: (database = "postgres") => `postgres://postgres@${host}:${port}/${database}`,
    async createDatabase() {
      const name = `db_${++databaseCount}`;
      await createDatabase(server.url(), name);
      return server.url(name);
    },
    pause() {
      running.signal("SIGSTOP"); // first, so that no process is added to the list below
      for (const pid of childrenOf(running.pid)) {
        signalIfRunning(pid, "SIGSTOP");
        killWithUs(pid); // a paused process does not notice that its postmaster is gone
        paused.push(pid);
      }
    },
    resume() {
      for (const pid of paused) {
        signalIfRunning(pid, "SIGCONT");
        forget(pid);
      }
      paused = [];
      running.signal("SIGCONT");
    },
    async kill() {
      if (running.hasEnded) return;
      const pids = childrenOf(running.pid);
      await running.kill();
      for (const pid of pids) signalIfRunning(pid, "SIGKILL"); // else it could still finish what it is doing
      await untilEnded(pids);
      for (const pid of paused) forget(pid);
      paused = [];
    },
    async restart() {
      await server.kill();
      running = await launch(port);
    },
    async stop() {
      if (paused.length > 0) server.resume();
      await running.end("SIGQUIT"); // PostgreSQL's immediate shutdown, which waits for its own processes
      await rm(directory, { recursive: true, force: true });
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
    },
  };
  return server;
}

function defaultSettings(directory: string, port: number): Record<string, string> {
  return {
    listen_addresses: host,
    port: String(port),
    unix_socket_directories: directory,
    max_connections: "200",
    shared_preload_libraries: "pg_stat_statements",
    // A test's data need not survive the machine, so nothing waits for the disk. They do survive a killed server.
    fsync: "off",
    full_page_writes: "off",
  };
}
