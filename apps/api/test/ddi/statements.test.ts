import { hasPostgres } from "@ota/testkit";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startApi, type TestApi } from "../support/start-api.ts";
import { anOfferedDevice, ddiCaller, feedback } from "./ddi-client.ts";

describe.skipIf(!hasPostgres)("a DDI poll sends one statement, as a native check does", () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startApi({ env: { OTA_LAST_SEEN_FLUSH_MS: "600000" } });
    await api.db.execute(sql`create extension pg_stat_statements`);
  });
  afterAll(() => api.close());

  /** Tried again where one of the service's background jobs came in between. */
  async function statementsOf(work: () => Promise<unknown>): Promise<number> {
    for (let attempt = 1; attempt <= 20; attempt += 1) {
      await api.db.execute(sql`select pg_stat_statements_reset()`);
      await work();
      const rows = await api.db.execute<{ query: string; calls: number }>(sql`
        select s.query, s.calls::int as calls from pg_stat_statements s join pg_database d on d.oid = s.dbid
        where d.datname = current_database() and s.query not like '%pg_stat_%'
      `);
      const counted = [...(rows as unknown as Iterable<{ readonly query: string; readonly calls: number }>)];
      if (counted.some(({ query }) => query.includes("background_jobs"))) continue;
      return counted.reduce((sum, { calls }) => sum + calls, 0);
    }
    throw new Error("The background jobs came in between each time.");
  }

  test("with an open action, and when it has succeeded", async () => {
    const { ddi, actionId } = await anOfferedDevice(api);
    const id = await actionId("deploymentBase");
    expect(await statementsOf(() => ddi("GET", ""))).toBe(1);
    await ddi("POST", `/deploymentBase/${id}/feedback`, { json: feedback("closed", "success") });
    expect(await statementsOf(() => ddi("GET", ""))).toBe(1);
  });

  test("with a wrong token, and with another device's", async () => {
    const [one, other] = [await anOfferedDevice(api), await anOfferedDevice(api)];
    for (const token of ["wrong", other.token]) {
      expect(await statementsOf(() => ddiCaller(api, one.serial, `TargetToken ${token}`)("GET", ""))).toBe(1);
    }
  });
});
