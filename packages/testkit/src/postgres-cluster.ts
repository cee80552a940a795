import { execFile, execFileSync } from "node:child_process";
import { chown } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { postgresBinDir } from "./binaries.ts";
import { temporaryDirectory } from "./process-guard.ts";

const run = promisify(execFile);

/** An OS user that processes are started as. */
export interface OsUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The OS user that PostgreSQL's programs run as: undefined for the own one; `postgres` when this process is root,
 * since they refuse to run as root.
 */
export function postgresUser(): OsUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** PostgreSQL's folder of programs. @throws Error that says how to get them when there is none. */
export function requirePostgres(): string {
  if (postgresBinDir !== undefined) return postgresBinDir;
  throw new Error("PostgreSQL was not found: apt-get install -y postgresql, or set POSTGRES_BIN_DIR");
}

/** Makes a fresh folder for a cluster's data and socket, owned by the user it runs as. */
export async function clusterDirectory(): Promise<string> {
  const directory = temporaryDirectory("postgres");
  const user = postgresUser();
  if (user !== undefined) await chown(directory, user.uid, user.gid);
  return directory;
}

/** Makes an empty cluster in `<directory>/data`: superuser `postgres`, no password, UTF-8. About one second. */
export async function initCluster(directory: string): Promise<void> {
  const fixed = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions"];
  await run(join(requirePostgres(), "initdb"), ["--pgdata", join(directory, "data"), "--no-sync", ...fixed], {
    cwd: directory,
    ...postgresUser(),
  });
}

/** Copies the cluster of one such folder, which must not be running, into another. About 0.1 s. */
export async function copyCluster({ from, to }: { from: string; to: string }): Promise<void> {
  await run("cp", ["-R", join(from, "data"), join(to, "data")], { cwd: to, ...postgresUser() });
}
