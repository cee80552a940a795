import type { PostgresTestDatabase } from "./postgres-client.ts";

/** The plan that a prepared statement is executed by, whatever its parameters. */
export async function planOf(database: PostgresTestDatabase, text: string): Promise<string> {
  const parameters = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));
  const nulls = Array.from({ length: parameters }, () => "null").join(", ");
  const results = (await database.query(`
    set plan_cache_mode = force_generic_plan;
    prepare statement as ${text};
    explain execute statement${parameters === 0 ? "" : `(${nulls})`};
    deallocate statement;
    reset plan_cache_mode;
  `)) as unknown as Record<string, string>[][];
  return results.flatMap((rows) => rows.map((row) => row["QUERY PLAN"])).join("\n");
}
