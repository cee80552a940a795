import type { UpdateAnswer } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { planOf } from "../support/plan-of.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const DEVICES = 20_000;
/** The tables that grow with the fleet and with time. */
const GROWING = /Seq Scan on (devices|upgrades|upgrade_attempts|attempt_events)\b/;

describe.skipIf(!hasPostgres)("the statements of the device path", () => {
  let database: PostgresTestDatabase;
  const statements = new Set<string>();

  beforeAll(async () => {
    database = await openPostgresClient();
    const fleet = await createFleet(database.db);
    const old = await fleet.release("1.0.0");
    await database.query(`
      insert into devices (public_id, product_id, serial, token_hash, channel)
        select gen_random_uuid(), p.id, 'filler-' || n, sha256(('filler-' || n)::bytea), 'stable'
        from products p, generate_series(1, ${DEVICES}) n;
      insert into upgrades (public_id, device_id, firmware_id, rollout_id)
        select gen_random_uuid(), d.id, f.id, r.id from devices d, firmware f join rollouts r on r.firmware_id = f.id
        where f.public_id = '${old.id}';
      insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, last_seq)
        select id, device_id, firmware_id, rollout_id, 1, 'offered', 1 from upgrades;
      insert into attempt_events (attempt_id, seq, to_state) select id, 1, 'offered' from upgrade_attempts;
      analyze;
    `);

    const recorded = database.hooked({ before: async (text) => void statements.add(text) });
    const checks = startChecks(recorded);
    const { tokenHash } = await fleet.device();
    const check = async (version?: string) =>
      (await checks.checkForUpdate({ tokenHash, reported: { version } })) as UpdateAnswer;
    await check();
    await check("0.9.0");
    await fleet.release("2.0.0");
    const { attempt } = await check();
    await checks.recordReport({ tokenHash, attemptId: attempt.id, report: { state: "downloading" } });
    await checks.recordReport({ tokenHash, attemptId: attempt.id, report: { state: "installed", version: "0.9.1" } });
    await check("2.0.0");
    await checks.close();
  });
  afterAll(() => database.close());

  it("are few, and none of their texts depends on data", () => {
    expect(statements.size).toBeLessThanOrEqual(12);
    expect([...statements].filter((text) => /'(offered|stable|0\.9\.0|2\.0\.0)'/.test(text))).toEqual([]);
  });

  it("find their rows by an index, however many devices, records and events there are", async () => {
    const scans: string[] = [];
    for (const text of statements) {
      const plan = await planOf(database, text);
      expect(plan).toContain("Scan");
      if (GROWING.test(plan)) scans.push(`${text}\n${plan}`);
    }
    expect(scans).toEqual([]);
  });
});
