import { createTestDatabase, hasPostgres } from "@ota/testkit";
import postgres from "postgres";
import { describe, expect, test } from "vitest";
import type { PostgresConfig } from "../../src/config.ts";
import { migratePostgres, SchemaOutdatedError } from "../../src/migrations.ts";

async function freshDatabase(): Promise<PostgresConfig> {
  const url = await createTestDatabase();
  return { kind: "postgres", url, poolSize: 4, connectTimeoutMs: 5000, statementTimeoutMs: 10_000 };
}

async function query(config: PostgresConfig, text: string): Promise<readonly Record<string, unknown>[]> {
  const sql = postgres(config.url, { max: 1 });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end();
  }
}

describe.skipIf(!hasPostgres)("migratePostgres", () => {
  test("several processes that migrate at once apply each migration once", async () => {
    const config = await freshDatabase();
    await Promise.all(Array.from({ length: 4 }, () => migratePostgres(config, "auto")));
    const [applied] = await query(
      config,
      "select count(*)::int as n, count(distinct hash)::int as kinds from drizzle.__drizzle_migrations",
    );
    expect(applied?.["n"]).toBe(applied?.["kinds"]);
    expect(applied?.["n"]).toBeGreaterThan(0);
    expect(await query(config, "select 1 from pg_locks where locktype = 'advisory'")).toEqual([]);
  });

  test("off leaves an empty database alone and says what to do", async () => {
    const config = await freshDatabase();
    await expect(migratePostgres(config, "off")).rejects.toThrow(SchemaOutdatedError);
    await expect(migratePostgres(config, "off")).rejects.toThrow(/OTA_MIGRATE=only/);
    expect(await query(config, "select 1 from pg_class where relname = 'devices'")).toEqual([]);
  });

  test("off accepts a schema that is as new, or newer", async () => {
    const config = await freshDatabase();
    await migratePostgres(config, "auto");
    await migratePostgres(config, "off");
    await query(config, "insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', 9999999999999)");
    await migratePostgres(config, "off");
  });
});
