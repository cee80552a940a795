import { storeContract } from "@ota/lock-core/testing";
import { createTestDatabase, hasPostgres, startTcpProxy } from "@ota/testkit";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, describe, test } from "vitest";
import { LOCK_TABLE, PostgresRowStore } from "../examples/postgres-row-store/postgres-row-store.ts";

describe.skipIf(!hasPostgres)("PostgresRowStore, an example, keeps the store contract", () => {
  let direct: Sql;
  let clients: readonly [Sql, Sql];
  let proxy: Awaited<ReturnType<typeof startTcpProxy>>;
  beforeAll(async () => {
    const url = new URL(await createTestDatabase());
    proxy = await startTcpProxy({ target: { host: url.hostname, port: Number(url.port || 5432) } });
    const proxied = Object.assign(new URL(url), { hostname: proxy.host, port: String(proxy.port) }).href;
    direct = postgres(url.href);
    clients = [postgres(proxied, { backoff: () => 0.1 }), postgres(proxied, { backoff: () => 0.1 })];
    await direct.unsafe(LOCK_TABLE);
  });
  afterAll(async () => {
    await Promise.all([direct, ...clients].map((sql) => sql.end({ timeout: 1 })));
    await proxy.close();
  });

  const cases = storeContract({
    stores: () => [new PostgresRowStore(clients[0]), new PostgresRowStore(clients[1])],
    contents: (key) => direct`select owner, ends_at::text from lock_row where key_shown = ${key}`.then(Array.from),
    lifetimeMs: async (key) => {
      const [row] = await direct`
        select extract(epoch from ends_at - clock_timestamp())::float8 * 1000 as ms from lock_row where key_shown = ${key}`;
      return row?.["ms"];
    },
    breakBackend: async () => {
      proxy.refuse();
      proxy.cut();
      return async () => proxy.resume();
    },
  });
  for (const { rule, title, run } of cases) test(`rule ${rule}: ${title}`, run);
});
