import { createTestDatabase, hasPostgres, startPostgres } from "@ota/testkit";
import postgres from "postgres";
import { describe, expect, test } from "vitest";

describe.skipIf(!hasPostgres)("startPostgres", () => {
  test("answers", async () => {
    const sql = postgres(await createTestDatabase());
    expect((await sql`select 1 as a`)[0]).toEqual({ a: 1 });
    await sql.end();
  });
  test("private", async () => {
    await using pg = await startPostgres();
    const sql = postgres(await pg.createDatabase());
    expect((await sql`select 1 as a`)[0]).toEqual({ a: 1 });
    await sql.end();
  });
});
