import { hasPostgresBinaries, type PostgresServer, startPostgres } from "@ota/testkit";
import postgresClient, { type Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seededRandom } from "./seeded-random.ts";
import { auditDatabase, auditReports, type Findings } from "./storm-audit.ts";
import { prepareFleet } from "./storm-fleet.ts";

const found = (findings: Findings) => Object.fromEntries(Object.entries(findings).filter(([, count]) => count > 0));

// What the storm relies on: that its audit finds each fault. Nothing else would tell that it looks at the wrong thing.
describe.skipIf(!hasPostgresBinaries)("the audit of a storm", { timeout: 60_000 }, () => {
  let postgres: PostgresServer;
  let sql: Sql;
  beforeAll(async () => {
    postgres = await startPostgres({ settings: { track_commit_timestamp: "on" } });
    const url = await postgres.createDatabase();
    const caps = { maxConcurrent: 1, maxTotal: 2 };
    await prepareFleet(url, { devices: 20, caps, random: seededRandom(1) });
    sql = postgresClient(url, { max: 1, onnotice: () => {} });
    await sql`alter table upgrades drop constraint upgrades_device_id_firmware_id_unique`;
    await sql`drop index upgrade_attempts_live_device_id_unique`;
  }, 180_000);
  afterAll(async () => {
    await sql.end();
    await postgres.stop();
  });

  /** Finds what one fault shows alone, and undoes it: what is committed only shows in the commits' times. */
  async function findingsOf(plant: () => Promise<unknown>): Promise<Findings> {
    await plant();
    const findings = found(await auditDatabase(sql));
    await sql`truncate upgrades, upgrade_attempts, attempt_events, figures, figure_deltas`;
    await sql`insert into figure_deltas (kind, owner_id, key, delta)
      select 'product_version', product_id, coalesce(reported_version, confirmed_version, ''), count(*) from devices group by 2, 3`;
    await sql`update rollout_counters set live = 0, granted = 0, succeeded = 0, failed = 0`;
    return findings;
  }

  /** Opens an attempt of the nth device in the rollout of the version, as a check does. */
  async function open(device: number, version = "2.0.0"): Promise<number> {
    const [row] = await sql<{ id: number }[]>`
      with offer as (
        select r.id as rollout_id, f.id as firmware_id, f.product_id
        from rollouts r join firmware f on f.id = r.firmware_id where f.version = ${version} order by r.id limit 1
      ), upgrade as (
        insert into upgrades (public_id, device_id, firmware_id, rollout_id)
        select gen_random_uuid(), d.id, firmware_id, rollout_id
        from offer join devices d using (product_id) order by d.id offset ${device} limit 1 returning *
      ), attempt as (
        insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, last_seq)
        select id, device_id, firmware_id, rollout_id, 1, 'offered', 1 from upgrade returning *
      ), event as (
        insert into attempt_events (attempt_id, seq, to_state) select id, 1, 'offered' from attempt
      ), counted as (
        update rollout_counters k set live = live + 1,
          granted = granted + (not exists (select from upgrade_attempts a where a.rollout_id = k.rollout_id
            and a.device_id = attempt.device_id))::int
        from attempt where k.rollout_id = attempt.rollout_id
      )
      select id from attempt`;
    return row?.id ?? 0;
  }

  async function fail(attemptId: number, times = 1): Promise<void> {
    for (let time = 0; time < times; time += 1) {
      await sql`
        with ended as (
          update upgrade_attempts set state = 'failed', closed_at = now(), last_seq = last_seq + 1
          where id = ${attemptId} returning *
        ), event as (
          insert into attempt_events (attempt_id, seq, from_state, to_state)
          select id, last_seq, 'offered', 'failed' from ended
        )
        update rollout_counters k set live = live - ${time === 0 ? 1 : 0}, failed = failed + ${time === 0 ? 1 : 0}
        from ended where k.rollout_id = ended.rollout_id`;
    }
  }

  test("finds nothing in what is right: one attempt after the other", async () => {
    const right = async () => {
      await fail(await open(0));
      await fail(await open(1));
      await open(2);
    };
    expect(await findingsOf(right)).toEqual({});
  });

  test("finds a second record, and attempts of one device that were open together and no longer are", async () => {
    const twice = async () => {
      const both = [await open(0, "4.0.0"), await open(0, "4.0.0")];
      for (const id of both) await fail(id);
    };
    expect(await findingsOf(twice)).toEqual({
      "records beyond the one of (device, firmware)": 1,
      "devices that ever had more than one open attempt at once": 1,
    });
    expect(await findingsOf(async () => void [await open(0, "4.0.0"), await open(0, "2.0.0")])).toEqual({
      "devices with more than one open attempt": 1,
      "devices that ever had more than one open attempt at once": 1,
    });
  });

  test("finds a cap that was exceeded for a moment only, and one on all devices", async () => {
    const overlapping = async () => {
      const [one, other] = [await open(0), await open(1)];
      await fail(one);
      await fail(other);
    };
    expect(await findingsOf(overlapping)).toEqual({ "rollouts with more open attempts at once than allowed": 1 });
    const third = async () => {
      for (const device of [0, 1, 2]) await fail(await open(device, "3.0.0"));
    };
    expect(await findingsOf(third)).toEqual({ "rollouts with more devices than allowed": 1 });
  });

  test("finds a history with a gap, an attempt that ended twice, and counters and figures that have drifted", async () => {
    const gap = async () => sql`delete from attempt_events where attempt_id = ${await open(0)}`;
    expect(await findingsOf(gap)).toEqual({ "attempts whose history has gaps or another end": 1 });
    expect(await findingsOf(async () => fail(await open(0), 2))).toEqual({
      "attempts that were closed more than once": 1,
    });
    expect(await findingsOf(() => sql`update rollout_counters set failed = 1 where rollout_id = 1`)).toEqual({
      "counters that differ from the history": 1,
    });
    expect(await findingsOf(() => sql`update figure_deltas set delta = delta + 1`)).toHaveProperty([
      "figures that differ from the tables",
    ]);
  });

  test("finds reports that were answered and are not there, and no other", async () => {
    const attemptId = await open(0);
    await sql`update attempt_events set details = '{here}' where attempt_id = ${attemptId}`;
    const report = { attemptId, sent: 1 };
    expect(
      await auditReports(sql, [
        { ...report, mark: "here", outcome: "stored" },
        { ...report, mark: "here", outcome: "given-up" },
        { ...report, mark: "lost", outcome: "stored" },
        { ...report, mark: "never", outcome: "given-up" },
        { ...report, mark: "late", outcome: "closed" },
      ]),
    ).toEqual({
      "reports answered 2xx and absent": 1,
      "reports sent again ten times and absent": 1,
      "reports refused as late on an open attempt": 1,
    });
  });
});
