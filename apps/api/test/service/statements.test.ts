import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createFleet, type Fleet } from "./fleet.ts";
import { call, check } from "./operator-client.ts";
import { type ListeningService, startServiceProcess } from "./service-process.ts";

describe.skipIf(!hasPostgres)("SQL statements of a check, BEGIN and COMMIT counted", { timeout: 120_000 }, () => {
  let fleet: Fleet;
  let service: ListeningService;
  beforeAll(async () => {
    const url = await createTestDatabase();
    fleet = await createFleet(url);
    // Last-seen times are written in batches, apart from the checks: not while this counts.
    service = await startServiceProcess({ env: { DATABASE_URL: url, OTA_LAST_SEEN_FLUSH_MS: "600000" } });
    await fleet.sql`create extension pg_stat_statements`;
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await fleet[Symbol.asyncDispose]();
  });

  /** Until no other connection is in the middle of anything. */
  const quiet = () =>
    vi.waitFor(async () => {
      const busy = await fleet.sql`
        select from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'`;
      expect(busy).toHaveLength(0);
    }, 30_000);

  /**
   * The statements that the action sends, each with how often, as the server has counted them. Every couple of seconds the
   * service's background jobs send some of their own: where one of them came in between, the action is tried again.
   */
  async function statementsOf(
    action: (attempt: number) => Promise<unknown>,
  ): Promise<{ total: number; texts: string }> {
    for (let attempt = 1; attempt <= 20; attempt += 1) {
      await quiet();
      await fleet.sql`select pg_stat_statements_reset()`;
      await action(attempt);
      await quiet();
      const rows = await fleet.sql<{ query: string; calls: number }[]>`
        select s.query, s.calls::int as calls from pg_stat_statements s join pg_database d on d.oid = s.dbid
        where d.datname = current_database() and s.query not like '%pg_stat_%'`;
      // The first thing that a job's transaction does.
      if (rows.some(({ query }) => query.includes("background_jobs"))) continue;
      const texts = rows.map(({ query, calls }) => `${calls} × ${query}`).join("\n");
      return { total: rows.reduce((sum, { calls }) => sum + calls, 0), texts };
    }
    throw new Error("The background jobs came in between each time.");
  }

  test("one, for a device with an open attempt and for one that is up to date", async () => {
    const [offered = "", current = ""] = await fleet.register(2);
    const ask = async (token: string, version: string) => {
      const { status } = await call(service.url, "/v1/check", { token, json: { version } });
      expect(status).toBe(200);
    };
    await ask(offered, "1.0.0");
    await ask(current, "2.0.0");
    const rounds = 10;
    const { total, texts } = await statementsOf(async () => {
      for (let i = 0; i < rounds; i++) {
        await ask(offered, "1.0.0");
        await ask(current, "2.0.0");
      }
    });
    console.log(`steady check: ${total / rounds / 2} statement(s)`);
    expect(total, texts).toBe(2 * rounds);
  });

  test("two, when the device reports another version that changes nothing else", async () => {
    const [token = ""] = await fleet.register(1);
    expect((await call(service.url, "/v1/check", { token, json: { version: "2.0.0" } })).status).toBe(200);
    const { total, texts } = await statementsOf((attempt) =>
      call(service.url, "/v1/check", { token, json: { version: `2.${attempt}.0` } }),
    );
    console.log(`check that writes a version: ${total} statement(s)`);
    expect(total, texts).toBe(2);
  });

  test("a check that creates sends a bounded number, told here", async () => {
    const tokens = await fleet.register(20);
    const { total, texts } = await statementsOf((attempt) => check(service.url, tokens[attempt - 1] ?? ""));
    console.log(`check that creates: ${total} statement(s)`);
    expect(total, texts).toBeLessThanOrEqual(12);
  });
});
