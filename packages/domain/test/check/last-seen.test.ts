import { hasPostgres } from "@ota/testkit";
import { eq } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LastSeen } from "../../src/check/last-seen.ts";
import { registerDevices } from "../../src/index.ts";
import { devices } from "../../src/schema/index.ts";
import { createFleet, quietLogger } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const DEVICES = 300;
/** Nothing is written but by the test's own word. */
const NEVER_MS = 2 ** 31 - 1;

describe.skipIf(!hasPostgres)("LastSeen", () => {
  let database: PostgresTestDatabase;
  let ids: bigint[];
  beforeEach(async () => {
    database = await openPostgresClient();
    const { product } = await createFleet(database.db);
    const rows = await database.query(`
      insert into devices (public_id, product_id, serial, token_hash, channel)
        select gen_random_uuid(), id, 'd-' || n, sha256(('d-' || n)::bytea), 'stable'
        from products, generate_series(1, ${DEVICES}) n where name = '${product}'
      returning id::text
    `);
    ids = rows.map(({ id }) => BigInt(id as string));
  });
  afterEach(() => database.close());

  function open(options: { readonly db?: typeof database.db; readonly flushMs?: number } = {}) {
    const warnings: unknown[] = [];
    const logger = { ...quietLogger, warn: (fields: unknown) => void warnings.push(fields) };
    const lastSeen = new LastSeen({ db: options.db ?? database.db, logger, flushMs: options.flushMs ?? NEVER_MS });
    return { lastSeen, warnings };
  }

  async function written(): Promise<number> {
    const [row] = await database.query("select count(last_seen_at)::int as n from devices");
    return row?.["n"] as number;
  }

  /** How many statements wait for a lock. */
  async function countWaiting(): Promise<number> {
    const [row] = await database.query(`
      select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    `);
    return row?.["n"] as number;
  }

  it("writes by itself within its interval", async () => {
    const { lastSeen } = open({ flushMs: 10 });
    for (const id of ids) lastSeen.touch(id, new Date());
    await vi.waitFor(async () => expect(await written()).toBe(DEVICES));
  });

  it("several processes that have seen the same devices in another order do not block each other", async () => {
    const forwards = open();
    const backwards = open();
    for (let round = 1; round <= 20; round += 1) {
      for (const id of ids) forwards.lastSeen.touch(id, new Date(round));
      for (const id of ids.toReversed()) backwards.lastSeen.touch(id, new Date(round));
      await Promise.all([forwards.lastSeen.flush(), backwards.lastSeen.flush()]);
    }
    expect([...forwards.warnings, ...backwards.warnings]).toEqual([]);
    expect(await written()).toBe(DEVICES);
  });

  it("and a list that changes the same devices do not block each other, whatever their serials", async () => {
    const { lastSeen, warnings } = open();
    // The first by its id is the last by its serial.
    await database.query("update devices set serial = 'e-1' where serial = 'd-1'");
    const lines = ["d-2", "e-1"].map((serial, line) => ({ line, device: { serial, attributes: { changed: true } } }));
    const waiting = (count: number) => vi.waitFor(async () => expect(await countWaiting()).toBe(count), 20_000);
    const [{ name: product = "" } = {}] = (await database.query("select name from products")) as { name: string }[];

    let work: readonly Promise<unknown>[] = [];
    // While somebody has the second one, both begin: then each must have left to the other what comes first.
    await database.db.transaction(async (tx) => {
      await tx.select({ id: devices.id }).from(devices).where(eq(devices.serial, "d-2")).for("update");
      const list = registerDevices(database.db, { actor: { kind: "system" }, product, lines, existing: "update" });
      await waiting(1);
      for (const id of ids.slice(0, 2)) lastSeen.touch(id, new Date());
      work = [list, lastSeen.flush()];
      await waiting(2);
    });
    await Promise.all(work);
    expect(warnings).toEqual([]);
    expect(await written()).toBe(2);
  });

  it("tries again with the next flush what could not be written, and keeps what was seen meanwhile", async () => {
    let down = true;
    const db = database.hooked({
      before: async () => {
        if (down) throw new Error("the database is down");
      },
    });
    const { lastSeen, warnings } = open({ db });
    const [first, second] = ids as [bigint, bigint];
    lastSeen.touch(first, new Date(1_000));
    lastSeen.touch(second, new Date(1_000));
    const failing = lastSeen.flush();
    lastSeen.touch(second, new Date(2_000));
    await failing;
    expect(warnings).toHaveLength(1);
    expect(await written()).toBe(0);

    down = false;
    await lastSeen.flush();
    const times = await database.query(
      "select extract(epoch from last_seen_at)::int as s from devices where last_seen_at is not null order by id",
    );
    expect(times).toEqual([{ s: 1 }, { s: 2 }]);
  });

  it("writes thousands in statements of a thousand", async () => {
    const texts: string[] = [];
    const { lastSeen } = open({ db: database.hooked({ before: async (text) => void texts.push(text) }) });
    for (let id = 1n; id <= 2_500n; id += 1n) lastSeen.touch(id, new Date());
    await lastSeen.flush();
    expect(texts).toHaveLength(3);
    expect(new Set(texts).size).toBe(1);
    expect(await written()).toBe(DEVICES);
  });
});
