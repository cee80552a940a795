import { assignDeadlines, deleteOldAudit, deleteOldEvents, timeOutAttempts } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFleet } from "../support/fleet.ts";
import { planOf } from "../support/plan-of.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";
import { runJob } from "../support/run-job.ts";

const DEVICES = 20_000;
/** The tables that grow with the fleet and with time. */
const GROWING = /Seq Scan on (devices|upgrades|upgrade_attempts|attempt_events|audit_log)\b/;
/** All attempts are passed on the way to those without a deadline, most of which are over. */
const PASSES_ALL = /Filter: \(.*deadline_at IS NULL/;

describe.skipIf(!hasPostgres)("the statements of the sweeper", () => {
  let database: PostgresTestDatabase;
  const statements = new Set<string>();
  const done: Record<string, number> = {};

  beforeAll(async () => {
    database = await openPostgresClient();
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    // Of a hundred attempts one is silent, one has no deadline and one ended long ago: what is looked for is rare.
    await database.query(`
      insert into devices (public_id, product_id, serial, token_hash, channel)
        select gen_random_uuid(), p.id, 'filler-' || n, sha256(('filler-' || n)::bytea), 'stable'
        from products p, generate_series(1, ${DEVICES}) n;
      insert into upgrades (public_id, device_id, firmware_id, rollout_id)
        select gen_random_uuid(), d.id, f.id, r.id from devices d, firmware f join rollouts r on r.firmware_id = f.id;
      insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, last_seq, deadline_at, closed_at)
        select id, device_id, firmware_id, rollout_id, 1,
          case when id % 2 = 0 then 'succeeded' else 'offered' end, 1,
          case when id % 2 = 0 or id % 100 = 3 then null when id % 100 = 1 then now() else now() + interval '1 day' end,
          case when id % 100 = 2 then now() - interval '400 days' when id % 2 = 0 then now() end
        from upgrades;
      insert into attempt_events (attempt_id, seq, to_state) select id, 1, 'offered' from upgrade_attempts;
      insert into audit_log (public_id, at, actor_kind, action, subject_id)
        select gen_random_uuid(), now() - (n % 100) * interval '1 day', 'system', 'device.update', 'device'
        from generate_series(1, ${DEVICES}) n;
      analyze;
    `);
    const recorded = database.hooked({ before: async (text) => void statements.add(text) });
    for (const job of [
      timeOutAttempts({ intervalMs: 1 }),
      assignDeadlines({ intervalMs: 1 }),
      deleteOldEvents({ intervalMs: 1, afterDays: 365 }),
      deleteOldAudit({ intervalMs: 1, afterDays: 99 }),
    ]) {
      done[job.name] = (await runJob(recorded, job)).reduce((sum, rows) => sum + rows, 0);
    }
  });
  afterAll(() => database.close());

  it("have done what there was to do", () => {
    const some = DEVICES / 100;
    expect(done).toEqual({
      ...{ "time-out-attempts": some, "assign-deadlines": some, "delete-old-events": some, "delete-old-audit": some },
    });
  });

  it("find their rows by an index, however many devices, records and events there are", async () => {
    const scans: string[] = [];
    for (const text of statements) {
      if (!/^(with|select|insert|update|delete)\b/i.test(text.trim())) continue;
      const plan = await planOf(database, text);
      if (GROWING.test(plan) || PASSES_ALL.test(plan)) scans.push(`${text}\n${plan}`);
    }
    expect(scans).toEqual([]);
  });
});
