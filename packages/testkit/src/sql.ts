import postgres from "postgres";

/** Creates the empty database `name` on the server of `serverUrl`. */
export async function createDatabase(serverUrl: string, name: string): Promise<void> {
  // template0: nobody can be connected to it, and a connection to the template makes the statement fail
  await execute(serverUrl, (sql) => sql`create database ${sql(name)} template template0`);
}

/** Drops every database of the server whose name starts with `prefix`, whoever is connected to it. */
export async function dropDatabases(serverUrl: string, prefix: string): Promise<void> {
  await execute(serverUrl, async (sql) => {
    const rows = await sql<{ name: string }[]>`
      select datname as name from pg_database where starts_with(datname, ${prefix})`;
    for (const { name } of rows) await sql`drop database if exists ${sql(name)} with (force)`;
  });
}

async function execute(serverUrl: string, run: (sql: postgres.Sql) => PromiseLike<unknown>): Promise<void> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => {} });
  try {
    await run(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
