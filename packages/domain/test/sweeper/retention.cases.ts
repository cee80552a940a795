import { expect, it } from "vitest";
import { deleteOldAudit, deleteOldEvents, getUpgrade, listAudit } from "../../src/index.ts";
import { anAttempt } from "../support/attempts.ts";
import { casesOn } from "../support/databases.ts";
import { aDevice, aProduct, aReleasedFirmware } from "../support/records.ts";
import { runJob } from "../support/run-job.ts";

const intervalMs = 1;

export const retentionCases = casesOn("retention", (database) => {
  /** An attempt that ended so many days ago, or is open, with so many events. */
  async function anOldAttempt(input: { daysAgo: number | "open"; events: number }) {
    const { db, query } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const { device } = await aDevice(db, product);
    const state = input.daysAgo === "open" ? "downloading" : "failed";
    const made = await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state });
    const { attemptId, upgradeId } = made;
    if (input.daysAgo !== "open") {
      await query(
        `update upgrade_attempts set closed_at = now() - interval '${input.daysAgo} days' where id = ${attemptId}`,
      );
    }
    await query(`
      insert into attempt_events (attempt_id, seq, to_state, received_at)
      select ${attemptId}, seq, 'downloading', now() - interval '99 years' from generate_series(1, ${input.events}) seq
    `);
    const events = async () => (await getUpgrade(db, { upgradeId })).attempts[0]?.events.length;
    return { attemptId, events };
  }

  it("deletes the history of attempts that ended long ago, and of no other; the attempts stay", async () => {
    const { db, query } = database();
    const old = await anOldAttempt({ daysAgo: 31, events: 3 });
    const recent = await anOldAttempt({ daysAgo: 29, events: 3 });
    const open = await anOldAttempt({ daysAgo: "open", events: 3 });
    expect(await runJob(db, deleteOldEvents({ intervalMs, afterDays: 30 }))).toEqual([3]);
    expect([await old.events(), await recent.events(), await open.events()]).toEqual([0, 3, 3]);

    await query(
      `update upgrade_attempts set closed_at = now() - interval '30 days 1 hour' where id = ${recent.attemptId}`,
    );
    expect(await runJob(db, deleteOldEvents({ intervalMs, afterDays: 30 }))).toEqual([3]);
    expect(await recent.events()).toBe(0);
  });

  it("deletes a long history in several batches", async () => {
    const { db } = database();
    const { events } = await anOldAttempt({ daysAgo: 30, events: 4_500 });
    const batches = await runJob(db, deleteOldEvents({ intervalMs, afterDays: 29 }));
    expect(batches).toEqual([2_000, 2_000, 500]);
    expect(await events()).toBe(0);
  });

  it("deletes audit entries that are old, in its own transactions alone", async () => {
    const { db, query } = database();
    const product = await aProduct(db);
    await query(`
      insert into audit_log (public_id, at, actor_kind, action, subject_id)
      select gen_random_uuid(), now() - interval '400 days', 'system', 'product.create', 'of-long-ago'
      from generate_series(1, 1500)
    `);
    expect(await runJob(db, deleteOldAudit({ intervalMs, afterDays: 399 }))).toEqual([1_000, 500]);
    expect((await listAudit(db, { subjectId: "of-long-ago" })).items).toEqual([]);
    expect((await listAudit(db, { subjectId: product })).items).toHaveLength(1);
    await expect(query("delete from audit_log")).rejects.toThrow("Rows of audit_log are only ever added");
    expect((await listAudit(db, { subjectId: product })).items).toHaveLength(1);
  });
});
