import { accessSync, constants, readdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/** Path of redis-server: `REDIS_SERVER_BIN`, else the first on PATH; undefined when there is none. */
export const redisServerPath: string | undefined = process.env["REDIS_SERVER_BIN"] || onPath("redis-server");

/** Folder of PostgreSQL's programs: `POSTGRES_BIN_DIR`, else from PATH, else Debian's newest; undefined when there is none. */
export const postgresBinDir: string | undefined = process.env["POSTGRES_BIN_DIR"] || findPostgres();

/** True when `startRedis` can work here. Meant for `describe.skipIf(!hasRedis)`. */
export const hasRedis: boolean = redisServerPath !== undefined;

/**
 * True when `createTestDatabase` can work here: PostgreSQL is installed, or `TEST_DATABASE_URL` names a server.
 * Meant for `describe.skipIf(!hasPostgres)`. `startPostgres` needs the installed one: see {@link hasPostgresBinaries}.
 */
export const hasPostgres: boolean = postgresBinDir !== undefined || Boolean(process.env["TEST_DATABASE_URL"]);

/** True when `startPostgres` can work here: PostgreSQL is installed. */
export const hasPostgresBinaries: boolean = postgresBinDir !== undefined;

/** True when images for swupdate can be made and installed here: swupdate, cpio and openssl are on PATH. */
export const hasSwupdate: boolean = ["swupdate", "swupdate-ipc", "cpio", "openssl"].every(
  (name) => onPath(name) !== undefined,
);

function findPostgres(): string | undefined {
  const found = onPath("initdb");
  if (found !== undefined) return dirname(found);
  return debianPostgresDirs().find((dir) => isExecutable(join(dir, "initdb")));
}

/** Debian keeps the server's programs off PATH, one folder per major version. Newest first. */
function debianPostgresDirs(): string[] {
  const root = "/usr/lib/postgresql";
  let versions: string[];
  try {
    versions = readdirSync(root);
  } catch {
    return []; // not Debian, or no PostgreSQL: the caller reports that none was found
  }
  return versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(root, version, "bin"));
}

function onPath(name: string): string | undefined {
  const dirs = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  return dirs.map((dir) => join(dir, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // the question asked
  }
}
