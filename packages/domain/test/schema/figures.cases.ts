import { sql } from "drizzle-orm";
import { expect, it } from "vitest";
import { ATTEMPT_STATES, foldFigures, productFigures, rolloutFigures } from "../../src/index.ts";
import { anAttempt, setAttemptState } from "../support/attempts.ts";
import { casesOn, type TestDatabase } from "../support/databases.ts";
import { aDevice, aProduct, aReleasedFirmware } from "../support/records.ts";

/** The figures as they are read: what was folded, and what was not yet. */
const FIGURES = `
  select kind, owner_id::text, key, sum(n)::int as count
  from (select kind, owner_id, key, count as n from figures union all select kind, owner_id, key, delta from figure_deltas) f
  group by kind, owner_id, key having sum(n) <> 0
  order by kind, owner_id, key
`;

/** The same, counted. */
const COUNTED = `
  select kind, owner_id::text, key, count(*)::int as count from (
    select 'rollout_state' as kind, rollout_id as owner_id, state as key from upgrade_attempts
    union all
    select 'rollout_step_state', a.rollout_id, a.firmware_id || ':' || a.state
    from upgrade_attempts a join rollouts r on r.id = a.rollout_id where r.firmware_id <> a.firmware_id
    union all
    select 'rollout_failure', rollout_id, failure_figure_key(a) from upgrade_attempts a
    where state in ('failed', 'timed_out')
    union all
    select 'product_version', product_id, coalesce(reported_version, confirmed_version, '') from devices
  ) c
  group by kind, owner_id, key
  order by kind, owner_id, key
`;

async function expectTrueFigures({ query }: TestDatabase) {
  expect(await query(FIGURES)).toEqual(await query(COUNTED));
}

async function anOffer({ db }: TestDatabase) {
  const product = await aProduct(db);
  const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
  const { device } = await aDevice(db, product);
  const { attemptId } = await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state: "offered" });
  const rolloutId = firmware.rollouts[0]?.id as string;
  return { product, device, firmware, rolloutId, attemptId };
}

export const figureCases = casesOn("the figures", (database) => {
  it("follow each attempt through all its states, in the transaction of the change", async () => {
    const { db, query } = database();
    const { attemptId } = await anOffer(database());
    await expectTrueFigures(database());
    for (const state of [...ATTEMPT_STATES, "timed_out", "succeeded"] as const) {
      await setAttemptState(db, { attemptId, state });
      await expectTrueFigures(database());
    }
    const deltas = async () => (await query("select count(*)::int as n from figure_deltas"))[0]?.["n"];
    const before = await deltas();
    await setAttemptState(db, { attemptId, state: "succeeded" });
    expect(await deltas()).toBe(before);
    const undone = db.transaction(async (tx) => {
      await setAttemptState(tx, { attemptId, state: "failed" });
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    expect(await deltas()).toBe(before);
  });

  it("count the steps of a rollout besides, so that its own firmware costs no more than without", async () => {
    const { db, query } = database();
    const { product, firmware, rolloutId, attemptId } = await anOffer(database());
    const row = `(select id from rollouts where public_id = '${rolloutId}')`;
    const deltas = () =>
      query(
        `select kind, key, delta from figure_deltas where owner_id = ${row} and kind <> 'product_version' order by id`,
      );
    expect(await deltas()).toEqual([{ kind: "rollout_state", key: "offered", delta: 1 }]);

    const step = await aReleasedFirmware(db, { product, version: "0.9.0" });
    const other = await aReleasedFirmware(db, { product, version: "0.8.0" });
    for (const { id, count } of [
      { id: step.id, count: 1 },
      { id: other.id, count: 2 },
    ]) {
      for (let n = 0; n < count; n += 1) {
        const { device } = await aDevice(db, product);
        await anAttempt(db, { deviceId: device.id, firmwareId: id, rolloutId, state: "offered" });
      }
    }
    await setAttemptState(db, { attemptId, state: "succeeded" });
    const expected = [
      { firmware: { id: firmware.id, version: "1.0.0" }, attempts: { offered: 0, succeeded: 1 } },
      { firmware: { id: other.id, version: "0.8.0" }, attempts: { offered: 2, succeeded: 0 } },
      { firmware: { id: step.id, version: "0.9.0" }, attempts: { offered: 1, succeeded: 0 } },
    ];
    const figures = (limit?: number) => rolloutFigures(db, { rolloutId, limit });
    expect(await figures()).toMatchObject({ attempts: { offered: 3, succeeded: 1 }, versions: expected });
    expect((await figures(2)).versions).toMatchObject(expected.slice(0, 2));
    expect((await figures(2)).versionsLeftOff).toEqual({ entries: 1, count: 1 });
    expect((await figures(1)).versions).toMatchObject(expected.slice(0, 1));
    expect((await figures(1)).versionsLeftOff).toEqual({ entries: 2, count: 3 });
    expect((await figures()).versionsLeftOff).toEqual({ entries: 0, count: 0 });
    await expectTrueFigures(database());
    await db.transaction((tx) => foldFigures({ intervalMs: 1 }).runBatch({ tx, fence: undefined, position: null }));
    expect((await figures()).versions).toMatchObject(expected);
  });

  it("follow attempts that one statement inserts, whatever their states, and none that it leaves out", async () => {
    const { db, query } = database();
    const { product, rolloutId } = await anOffer(database());
    const step = await aReleasedFirmware(db, { product, version: "0.9.0" });
    for (const firmwareId of [step.id, step.id, step.id]) {
      const { device } = await aDevice(db, product);
      await anAttempt(db, { deviceId: device.id, firmwareId, rolloutId, state: "failed" });
    }
    const insert = () =>
      query(`
        insert into upgrade_attempts
          (upgrade_id, device_id, firmware_id, rollout_id, n, state, closed_at, failure_code, failure_message)
        select upgrade_id, device_id, firmware_id, rollout_id, 2, one.state, now(), one.code, one.message
        from upgrade_attempts a
        cross join (values ('failed', 7, 'at 17'), ('timed_out', null, null), ('cancelled', null, null)) one(state, code, message)
        where a.n = 1 and a.rollout_id = (select id from rollouts where public_id = '${rolloutId}') order by random()
        on conflict do nothing
        returning id
      `);
    // Of the three for each upgrade one is the second attempt, and the others are left out.
    expect(await insert()).toHaveLength(4);
    await expectTrueFigures(database());
    expect(await insert()).toHaveLength(0);
    await expectTrueFigures(database());
  });

  it("count a failure by its reason, whatever numbers its message names", async () => {
    const { query } = database();
    for (const byte of [17, 4096]) {
      const { attemptId } = await anOffer(database());
      await query(`
        update upgrade_attempts
        set state = 'failed', closed_at = now(), failure_code = 5, failure_message = 'broken at byte ${byte}'
        where id = ${attemptId}
      `);
      const rollout = `(select rollout_id from upgrade_attempts where id = ${attemptId})`;
      expect(
        await query(`select key, delta from figure_deltas where kind = 'rollout_failure' and owner_id = ${rollout}`),
      ).toEqual([{ key: "failed:5:broken at byte #", delta: 1 }]);
    }
    await expectTrueFigures(database());
  });

  it("rank reasons and versions by all that is counted of them, in one order, and say what the limit leaves off", async () => {
    const { db } = database();
    const { product, rolloutId } = await anOffer(database());
    const undone = db.transaction(async (tx) => {
      const owner = `rollouts r join firmware f on f.id = r.firmware_id where r.public_id = '${rolloutId}'`;
      await tx.execute(
        sql.raw(`
          insert into figures (kind, owner_id, key, count)
          select kind, case kind when 'product_version' then f.product_id else r.id end, key, n
          from (values
            ('rollout_failure', 'timed_out::silent', 8), ('rollout_failure', 'failed:1:Zeta', 5),
            ('rollout_failure', 'failed:1:alpha', 5), ('rollout_failure', 'failed:2:mended', 4),
            ('rollout_failure', 'failed:3:grows', 2), ('product_version', '1.0.0', 9), ('product_version', '2.0.0', 3)
          ) as v(kind, key, n), ${owner}
        `),
      );
      await tx.execute(
        sql.raw(`
          insert into figure_deltas (kind, owner_id, key, delta)
          select 'rollout_failure', r.id, key, n
          from (values ('failed:2:mended', -4), ('failed:3:grows', 4), ('failed:4:new', 1)) as v(key, n), ${owner}
        `),
      );
      const ofRollout = (limit?: number) => rolloutFigures(tx, { rolloutId, limit });
      const ofProduct = (limit?: number) => productFigures(tx, { product, limit });
      const expected = [
        { state: "timed_out", code: null, message: "silent", count: 8 },
        { state: "failed", code: 3, message: "grows", count: 6 },
        { state: "failed", code: 1, message: "Zeta", count: 5 },
        { state: "failed", code: 1, message: "alpha", count: 5 },
        { state: "failed", code: 4, message: "new", count: 1 },
      ];
      for (const figures of [ofRollout, ofProduct]) {
        expect(await figures()).toMatchObject({ failures: expected, failuresLeftOff: { entries: 0, count: 0 } });
        const some = await figures(3);
        expect(some.failures).toEqual(expected.slice(0, 3));
        expect(some.failuresLeftOff).toEqual({ entries: 2, count: 6 });
      }
      expect(await ofProduct(1)).toMatchObject({
        ...{ devices: 13, versions: [{ version: "1.0.0", count: 9 }], versionsLeftOff: { entries: 2, count: 4 } },
        failuresLeftOff: { entries: 4, count: 17 },
      });
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    await expectTrueFigures(database());
  });

  it("follow devices from version to version, and forget those that are deleted with their data", async () => {
    const { query } = database();
    const { device, attemptId } = await anOffer(database());
    const where = `where public_id = '${device.id}'`;
    for (const change of [
      "confirmed_version = '0.9.0'",
      "reported_version = '1.0.0'",
      "last_seen_at = now()",
      "reported_version = null",
    ]) {
      await query(`update devices set ${change} ${where}`);
      await expectTrueFigures(database());
    }
    const [upgrade] = await query(`delete from upgrade_attempts where id = ${attemptId} returning upgrade_id::text`);
    await query(`delete from upgrades where id = ${upgrade?.["upgrade_id"]}`);
    await query(`delete from devices ${where}`);
    await expectTrueFigures(database());
  });

  it("stay the same when they are folded, and what has come to nothing goes", async () => {
    const { db, query } = database();
    const { product, attemptId } = await anOffer(database());
    const { devices, versions, attempts } = await productFigures(db, { product });
    expect({ devices, versions, attempts }).toMatchObject({
      ...{ devices: 1, versions: [{ version: null, count: 1 }], attempts: { offered: 1, failed: 0 } },
    });
    const fold = () =>
      db.transaction((tx) => foldFigures({ intervalMs: 1 }).runBatch({ tx, fence: undefined, position: null }));
    await fold();
    expect(await query("select * from figure_deltas")).toEqual([]);
    await setAttemptState(db, { attemptId, state: "failed" });
    expect(await fold()).toEqual({ more: false, rows: 3 });
    await expectTrueFigures(database());
    expect((await productFigures(db, { product })).failures).toEqual([
      { state: "failed", code: null, message: null, count: 1 },
    ]);
    expect(await query("select * from figures where count = 0")).toEqual([]);
    expect(await fold()).toEqual({ more: false, rows: 0 });
  });

  it("count devices that are registered together once for each version", async () => {
    const { query } = database();
    const { product } = await anOffer(database());
    await query(`
      insert into devices (public_id, product_id, serial, channel, reported_version)
      select gen_random_uuid(), products.id, 'bulk-' || i, 'stable', (i % 3)::text
      from generate_series(1, 300) i, products where name = '${product}'
    `);
    const ofProduct = `owner_id = (select id from products where name = '${product}')`;
    expect(await query(`select key, delta from figure_deltas where ${ofProduct} and delta > 1 order by key`)).toEqual(
      ["0", "1", "2"].map((key) => ({ key, delta: 100 })),
    );
    await expectTrueFigures(database());
  });
});
