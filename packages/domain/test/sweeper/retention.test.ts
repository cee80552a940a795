import { deleteOldEvents, type UpdateAnswer } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";
import { runJob } from "../support/run-job.ts";

const ATTEMPTS = 20_000;
const EVENTS = 5 * ATTEMPTS;

describe.skipIf(!hasPostgres)("retention beside the fleet's checks", { timeout: 120_000 }, () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
  });
  afterAll(() => database.close());

  const count = async (sql: string) =>
    (await database.query(`select count(*)::int as count from ${sql}`))[0]?.["count"];

  it(`${EVENTS} old rows go in small batches, while devices check and report as ever`, async () => {
    const { db, query } = database;
    const fleet = await createFleet(db, { confirmBy: "report" });
    const firmware = await fleet.release("2.0.0");
    const devices = await Promise.all(Array.from({ length: 20 }, () => fleet.device()));
    await query(`
      insert into devices (public_id, product_id, serial, token_hash, channel)
        select gen_random_uuid(), p.id, 'old-' || n, sha256(('old-' || n)::bytea), 'stable'
        from products p, generate_series(1, ${ATTEMPTS}) n;
      insert into upgrades (public_id, device_id, firmware_id, rollout_id)
        select gen_random_uuid(), d.id, f.id, r.id
        from devices d, firmware f join rollouts r on r.firmware_id = f.id
        where f.public_id = '${firmware.id}' and d.serial like 'old-%';
      insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, closed_at, last_seq)
        select id, device_id, firmware_id, rollout_id, 1, 'succeeded', now() - interval '400 days', 5 from upgrades;
      insert into attempt_events (attempt_id, seq, to_state)
        select id, seq, 'succeeded' from upgrade_attempts, generate_series(1, 5) seq;
      analyze;
    `);

    const checks = startChecks(db);
    let deleting = true;
    let answers = 0;
    let slowestMs = 0;
    const timed = async <T>(ask: () => Promise<T>): Promise<T> => {
      const startedAt = performance.now();
      const answer = await ask();
      slowestMs = Math.max(slowestMs, performance.now() - startedAt);
      answers += 1;
      return answer;
    };
    const traffic = devices.map(async ({ tokenHash }) => {
      while (deleting) {
        const { attempt } = (await timed(() => checks.checkForUpdate({ tokenHash }))) as UpdateAnswer;
        const report = { state: "downloading", progressPercent: 1 } as const;
        await timed(() => checks.recordReport({ tokenHash, attemptId: attempt.id, report }));
      }
    });
    const batches = await runJob(db, deleteOldEvents({ intervalMs: 1, afterDays: 365 }));
    const answersMeanwhile = answers;
    deleting = false;
    await Promise.all(traffic);

    expect(batches.reduce((sum, rows) => sum + rows, 0)).toBe(EVENTS);
    expect(Math.max(...batches)).toBeLessThanOrEqual(2_000);
    expect(await count("attempt_events where to_state = 'succeeded'")).toBe(0);
    expect(await count("upgrade_attempts")).toBe(ATTEMPTS + devices.length);
    expect(answersMeanwhile).toBeGreaterThan(2 * devices.length);
    // Far from the time that all of it takes: nobody has waited for the whole.
    expect(slowestMs).toBeLessThan(5_000);
    await checks.close();
  });
});
