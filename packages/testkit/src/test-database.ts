import { createDatabase } from "./sql.ts";
import { providedByRun } from "./vitest-run.ts";

let count = 0;

/**
 * Creates a fresh empty database on the PostgreSQL server of the vitest run and returns its URL. That server is shared:
 * it must not be killed or paused (take `startPostgres` for that). The database is dropped at the end of the run.
 *
 * The server is the one of `TEST_DATABASE_URL` (a user that may create databases), else one started by the run, which
 * has pg_stat_statements preloaded.
 * @throws Error outside of a vitest run, and where there is no PostgreSQL (see `hasPostgres`).
 */
export async function createTestDatabase(): Promise<string> {
  const provided = await providedByRun();
  if (provided === undefined) {
    throw new Error("No PostgreSQL in this vitest run: apt-get install -y postgresql, or set TEST_DATABASE_URL");
  }
  const name = `${provided.databasePrefix}${process.pid}_${++count}`;
  await createDatabase(provided.serverUrl, name);
  const url = new URL(provided.serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
