import { setTimeout as sleep } from "node:timers/promises";
import { createTestDatabase, hasPostgres, type PostgresServer, startPostgres, startTcpProxy } from "@ota/testkit";
import { sql as text } from "drizzle-orm";
import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { databaseFault } from "../../src/database-errors.ts";
import { openPostgresClient, type PostgresClient, type PostgresClientOptions } from "../../src/postgres-client.ts";

const opened: PostgresClient[] = [];

function open(options: Partial<PostgresClientOptions> & { readonly url: string }): PostgresClient {
  const client = openPostgresClient({ poolSize: 4, connectTimeoutMs: 2000, statementTimeoutMs: 10_000, ...options });
  opened.push(client);
  return client;
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((client) => client.close()));
});

/** What kind of fault an operation ends with; `undefined`: none. */
function faultOf(operation: Promise<unknown>): Promise<string | undefined> {
  return operation.then(
    () => undefined,
    (error: unknown) => databaseFault(error) ?? `unexpected: ${String(error)}`,
  );
}

describe.skipIf(!hasPostgres)("openPostgresClient", () => {
  test("statements are sent prepared: alone, in a transaction and in a nested one", async () => {
    const { sql } = open({ url: await createTestDatabase(), poolSize: 1 });
    const db = drizzle(sql);
    await db.execute(text`select ${1}::int as alone`);
    await db.transaction(async (tx) => {
      await tx.execute(text`select ${1}::int as within`);
      await tx.transaction(async (nested) => nested.execute(text`select ${1}::int as nested`));
    });
    const rows =
      await sql`select statement from pg_prepared_statements where statement like 'select $1::int%' order by 1`;
    expect(rows.map(({ statement }) => statement)).toEqual([
      "select $1::int as alone",
      "select $1::int as nested",
      "select $1::int as within",
    ]);
  });

  test("a statement that takes too long is cancelled by the server", async () => {
    const { sql } = open({ url: await createTestDatabase(), statementTimeoutMs: 200 });
    expect(await faultOf(sql`select pg_sleep(5)`)).toBe("busy");
    expect(await faultOf(sql`select 1`)).toBeUndefined();
  });

  test("waiting for a connection ends in time, and a transaction that was given up does nothing", async () => {
    const { sql } = open({ url: await createTestDatabase(), poolSize: 1, statementTimeoutMs: 400 });
    let ran = false;
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    // Sits on the only connection without a statement that the server could cancel.
    const holder = sql.begin(async (scope) => {
      await scope.unsafe("select $1::int", [1]);
      await over;
    });
    await sleep(50);
    const [statement, transaction] = await Promise.all([
      faultOf(sql.unsafe("select $1::int", [1])),
      faultOf(
        sql.begin(async () => {
          ran = true;
        }),
      ),
    ]);
    expect([statement, transaction]).toEqual(["busy", "busy"]);
    end();
    await holder;
    expect(await faultOf(sql`select 1`)).toBeUndefined();
    expect(ran).toBe(false);
  });

  test("a session that is lost within a transaction fails it, and none of its statements reaches another session", async () => {
    const url = await createTestDatabase();
    const { sql } = open({ url, poolSize: 1 });
    await sql`create table entries (name text)`;
    const admin = postgres(url, { max: 1 });
    const waiting: Promise<unknown>[] = [];
    const outcome = await faultOf(
      sql.begin(async (scope) => {
        await scope.unsafe("insert into entries values ($1)", ["first"]);
        const [row] = await scope`select pg_backend_pid() as pid`;
        // Work of others that the pool begins on the very connection, as soon as it is back.
        waiting.push(...[1, 2, 3].map((n) => sql.unsafe("select $1::int", [n])));
        await admin`select pg_terminate_backend(${row?.["pid"]})`;
        // Faithless code: it goes on after its session is gone.
        for (let i = 0; i < 20; i++) {
          await scope.unsafe("insert into entries values ($1)", ["later"]).catch(() => sleep(20));
        }
      }),
    );
    expect(outcome).toBe("unavailable");
    await Promise.allSettled(waiting);
    expect(await sql`select count(*)::int as n from entries`).toEqual([{ n: 0 }]);
    await admin.end();
  });

  test("a network that goes dark costs one limit of time, then new connections are made", async () => {
    const { hostname, port, ...rest } = partsOf(await createTestDatabase());
    await using proxy = await startTcpProxy({ target: { host: hostname, port } }).then(disposable);
    const { sql } = open({ url: rest.through(proxy.port), poolSize: 2, statementTimeoutMs: 400 });
    await sql`select 1`;
    proxy.hold();
    const startedAt = performance.now();
    expect(await faultOf(sql.unsafe("select $1::int", [1]))).toBe("unavailable");
    expect(performance.now() - startedAt).toBeLessThan(2000);
    proxy.resume();
    await expect.poll(() => faultOf(sql`select 1`), { timeout: 5000 }).toBeUndefined();
  });

  describe("with a server of its own", () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server.stop());

    test("a server that restarts under load costs requests, never the process, a connection or half a transaction", async () => {
      const url = await server.createDatabase();
      const { sql } = open({ url });
      await sql`create table pairs (id int, half int)`;
      const faults = new Map<string | undefined, number>();
      let last = 0;
      let stopping = false;
      const pair = (id: number) =>
        sql.begin(async (scope) => {
          await scope.unsafe("insert into pairs values ($1, 1)", [id]);
          await scope.unsafe("insert into pairs values ($1, 2)", [id]);
        });
      const loops = Array.from({ length: 24 }, async (_, i) => {
        while (!stopping) {
          const fault = await faultOf(i % 2 === 0 ? pair(++last) : sql.unsafe("select $1::int", [i]));
          faults.set(fault, (faults.get(fault) ?? 0) + 1);
          if (fault !== undefined) await sleep(20);
        }
      });
      for (let round = 0; round < 3; round++) {
        await sleep(300);
        await server.restart();
        await expect.poll(() => faultOf(sql`select 1`), { timeout: 10_000 }).toBeUndefined();
      }
      stopping = true;
      await Promise.all(loops);
      expect([...faults.keys()].sort()).toEqual(["unavailable", undefined]);
      expect(await sql`select id from pairs group by id having count(*) <> 2`).toEqual([]);
    });

    test("a server that hangs before COMMIT costs no more, and the transaction is over", async () => {
      const { sql } = open({ url: await server.createDatabase(), statementTimeoutMs: 400 });
      await sql`create table entries (name text)`;
      try {
        const startedAt = performance.now();
        const fault = await faultOf(
          sql.begin(async (scope) => {
            await scope.unsafe("insert into entries values ($1)", ["first"]);
            server.pause();
          }),
        );
        expect(fault).toBe("unavailable");
        expect(performance.now() - startedAt).toBeLessThan(3000);
      } finally {
        server.resume();
      }
      await expect.poll(() => faultOf(sql`select 1`), { timeout: 5000 }).toBeUndefined();
    });

    test("a server that hangs costs one limit of time, and is used again when it goes on", async () => {
      const { sql } = open({ url: await server.createDatabase(), statementTimeoutMs: 400 });
      await sql`select 1`;
      server.pause();
      try {
        const startedAt = performance.now();
        const faults = await Promise.all([
          faultOf(sql.unsafe("select $1::int", [1])),
          faultOf(sql.begin((scope) => scope.unsafe("select $1::int", [1]))),
        ]);
        expect(faults).toEqual(["unavailable", expect.stringMatching(/unavailable|busy/)]);
        expect(performance.now() - startedAt).toBeLessThan(3000);
      } finally {
        server.resume();
      }
      await expect.poll(() => faultOf(sql`select 1`), { timeout: 5000 }).toBeUndefined();
    });
  });
});

function partsOf(url: string) {
  const parsed = new URL(url);
  return {
    hostname: parsed.hostname,
    port: Number(parsed.port),
    through(port: number): string {
      const other = new URL(url);
      other.hostname = "127.0.0.1";
      other.port = String(port);
      return other.href;
    },
  };
}

function disposable<T extends { close(): Promise<void> }>(proxy: T): T & AsyncDisposable {
  return Object.assign(proxy, { [Symbol.asyncDispose]: () => proxy.close() });
}
