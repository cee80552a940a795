import { existsSync } from "node:fs";
import { createTestDatabase, hasPostgres, hasPostgresBinaries, startPostgres } from "@ota/testkit";
import postgres from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";

function open(url: string): postgres.Sql {
  const sql = postgres(url, { max: 1, onnotice: () => {}, backoff: false });
  onTestFinished(() => sql.end({ timeout: 0 }));
  return sql;
}

describe.skipIf(!hasPostgres)("createTestDatabase", () => {
  test("each database is empty and apart from the others", async () => {
    const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    expect(one).not.toBe(other);
    await open(one)`create table a (b int)`;
    const tables = await open(other)`select 1 from pg_tables where schemaname = 'public'`;
    expect(tables).toHaveLength(0);
  });

  test.skipIf(Boolean(process.env["TEST_DATABASE_URL"]))(
    "statements can be counted by pg_stat_statements",
    async () => {
      const sql = open(await createTestDatabase());
      await sql`create extension pg_stat_statements`;
      await sql`select 4711 as marker`;
      const [row] = await sql`select calls from pg_stat_statements where query like '%marker%' and calls = 1`;
      expect(row).toEqual({ calls: "1" });
    },
  );
});

describe.skipIf(!hasPostgresBinaries)("startPostgres", () => {
  test("settings win over the defaults", async () => {
    await using server = await startPostgres({ settings: { max_connections: "17" } });
    expect(await open(server.url())`show max_connections`).toEqual([{ max_connections: "17" }]);
  });

  test("a server that cannot start is an error with the server's own words", async () => {
    await expect(startPostgres({ settings: { max_connections: "many" } })).rejects.toThrow(/max_connections/);
  });

  test("a paused server answers nothing on an open connection until it is resumed", async () => {
    await using server = await startPostgres();
    const sql = open(await server.createDatabase());
    await sql`select 1`;
    server.pause();
    let answered = false;
    const answer = sql`select 2 as n`.then((rows) => {
      answered = true;
      return rows;
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(answered).toBe(false);
    server.resume();
    expect(await answer).toEqual([{ n: 2 }]);
  });

  test("committed rows survive a kill and a restart on the same port", async () => {
    await using server = await startPostgres();
    const url = await server.createDatabase();
    const before = open(url);
    await before`create table a (b int)`;
    await before`insert into a values (1)`;
    await server.kill();
    await expect(before`select 1`).rejects.toThrow();
    await server.restart();
    expect(await open(url)`select b from a`).toEqual([{ b: 1 }]);
  });

  test("a paused server can be killed, and restarted", async () => {
    await using server = await startPostgres();
    server.pause();
    await server.kill();
    await server.restart();
    expect(await open(server.url())`select 1 as n`).toEqual([{ n: 1 }]);
  });

  test("stop ends the server, even a paused one, and removes its data", async () => {
    const server = await startPostgres();
    const sql = open(server.url());
    const [row] = await sql`show data_directory`;
    const directory: string = row?.["data_directory"];
    expect(existsSync(directory)).toBe(true);
    server.pause();
    await server.stop();
    await server.stop();
    expect(existsSync(directory)).toBe(false);
    await expect(open(server.url())`select 1`).rejects.toThrow("ECONNREFUSED");
  });
});
