import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPostgresClient, type PostgresClient } from "../../src/postgres-client.ts";

describe("a transaction that begins on a busy connection", { skip: !hasPostgres }, () => {
  let client: PostgresClient;
  beforeAll(async () => {
    const limits = { connectTimeoutMs: 5000, statementTimeoutMs: 10_000 };
    client = openPostgresClient({ url: await createTestDatabase(), poolSize: 2, ...limits });
    await client.sql.unsafe("create table written (n int)");
  });
  afterAll(() => client.close());

  // The driver sends up to a hundred statements ahead on each connection; a BEGIN may be any of them.
  test.each(Array.from({ length: 12 }, (_, index) => 190 + index))(
    "has its connection to itself, with %i statements before it",
    async (before) => {
      const statements = Array.from({ length: before }, () => client.sql.unsafe("select 1"));
      const transactions = Array.from({ length: 3 }, () =>
        client.sql.begin(async (tx) => {
          await tx.unsafe("insert into written values ($1)", [before]);
          return (await tx.unsafe("select pg_current_xact_id_if_assigned() is not null as inside"))[0];
        }),
      );
      expect(await Promise.all(transactions)).toEqual(Array(3).fill({ inside: true }));
      await Promise.all(statements);
      const open = await client.sql.unsafe(
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and state like 'idle in%'",
      );
      expect(open[0]).toEqual({ n: 0 });
    },
  );
});
