import { LIVE_ATTEMPT_STATES } from "@ota/domain";
import type { Sql } from "postgres";
import type { SentReport } from "./ledger.ts";

/** How many of each fault the database shows: all 0 where it is right. */
export type Findings = Readonly<Record<string, number>>;

/**
 * When each attempt was opened and closed, by the commits: `opened_at` and `closed_at` are the beginnings of transactions,
 * which may wait for each other, while a place is given back and taken again in the order of commits. Needs a server with
 * `track_commit_timestamp`. What a transaction ends it has ended before it opens something.
 */
const STEPS = `
  select a.rollout_id, a.device_id, pg_xact_commit_timestamp(e.xmin) as at,
    case when e.seq = 1 then 1 when live(e.from_state) and not live(e.to_state) then -1 end as step
  from attempt_events e join upgrade_attempts a on a.id = e.attempt_id
  where e.seq = 1 or (live(e.from_state) and not live(e.to_state))
`.replaceAll(/live\(([^)]+)\)/g, `$1 in (${LIVE_ATTEMPT_STATES.map((state) => `'${state}'`).join(", ")})`);

const OPEN = `a.closed_at is null`;

/** The most attempts that were open at once, for each value of the column. */
const peaksBy = (column: "rollout_id" | "device_id") => `
  select ${column}, max(open)::int as peak from (
    select ${column}, sum(step) over (partition by ${column} order by at, step rows unbounded preceding) as open
    from (${STEPS}) steps
  ) running group by ${column}`;

const COUNTED = `
  select rollout_id, count(*) filter (where ${OPEN})::int as live, count(distinct device_id)::int as granted,
    count(*) filter (where state = 'succeeded')::int as succeeded,
    count(*) filter (where state in ('failed', 'timed_out'))::int as failed
  from upgrade_attempts a group by rollout_id`;

const FIGURES = `
  select kind, owner_id, key, sum(n)::int as n from (
    select kind, owner_id, key, count as n from figures union all select kind, owner_id, key, delta from figure_deltas
  ) kept group by 1, 2, 3 having sum(n) <> 0`;

const TABLES = `
  select 'rollout_state' as kind, rollout_id as owner_id, state as key, count(*)::int as n
    from upgrade_attempts group by 2, 3
  union all select 'rollout_step_state', a.rollout_id, a.firmware_id || ':' || a.state, count(*)::int
    from upgrade_attempts a join rollouts r on r.id = a.rollout_id where r.firmware_id <> a.firmware_id group by 2, 3
  union all select 'rollout_failure', rollout_id, failure_figure_key(a), count(*)::int
    from upgrade_attempts a where state in ('failed', 'timed_out') group by 2, 3
  union all select 'product_version', product_id, coalesce(reported_version, confirmed_version, ''), count(*)::int
    from devices group by 2, 3`;

/** Each selects what there must be none of. */
const FAULTS = {
  "records beyond the one of (device, firmware)": `
    select from (select row_number() over (partition by device_id, firmware_id) as nth from upgrades) u where nth > 1`,
  "devices with more than one open attempt": `
    select from upgrade_attempts a where ${OPEN} group by device_id having count(*) > 1`,
  "devices that ever had more than one open attempt at once": `select from (${peaksBy("device_id")}) p where peak > 1`,
  "rollouts with more open attempts at once than allowed": `
    select from (${peaksBy("rollout_id")}) p join rollouts r on r.id = p.rollout_id where peak > max_concurrent`,
  "rollouts with more devices than allowed": `
    select from (${COUNTED}) c join rollouts r on r.id = c.rollout_id where granted > max_total`,
  "attempts whose history has gaps or another end": `
    select from upgrade_attempts a left join lateral (
      select count(*) as events, max(seq) as last, (array_agg(to_state order by seq desc))[1] as state
      from attempt_events where attempt_id = a.id
    ) e on true where e.events <> a.last_seq or e.last is distinct from a.last_seq or e.state is distinct from a.state`,
  "attempts that were closed more than once": `
    select from (select attempt_id, count(*) as closings from attempt_events e
      where to_state = any(array['succeeded', 'failed', 'cancelled', 'timed_out', 'superseded'])
        and from_state is distinct from to_state and from_state <> 'timed_out' group by 1) c where closings > 1`,
  "counters that differ from the history": `
    select from rollout_counters k left join (${COUNTED}) c on c.rollout_id = k.rollout_id
    where (k.live, k.granted, k.succeeded, k.failed) is distinct from
      (coalesce(c.live, 0), coalesce(c.granted, 0), coalesce(c.succeeded, 0), coalesce(c.failed, 0))`,
  "figures that differ from the tables": `
    select from (${FIGURES}) f full join (${TABLES}) t
      on t.kind = f.kind and t.owner_id = f.owner_id and t.key = f.key where f.n is distinct from t.n`,
} as const;

/** Counts the faults that a database at rest shows by itself. */
export async function auditDatabase(sql: Sql): Promise<Findings> {
  const findings: Record<string, number> = {};
  for (const [fault, query] of Object.entries(FAULTS)) {
    const [row] = await sql.unsafe(`select count(*)::int as n from (${query}) faults`);
    findings[fault] = row?.["n"];
  }
  return findings;
}

/**
 * Compares what devices know of their reports with the history. Lost is one that was answered as recorded and is not there,
 * and one that was sent as often as a device does and is not there. A report may be refused as too late only on an attempt
 * that is over.
 */
export async function auditReports(sql: Sql, reports: readonly SentReport[]): Promise<Findings> {
  const rows = await sql<
    { mark: string }[]
  >`select distinct details[1] as mark from attempt_events where details <> '{}'`;
  const stored = new Set(rows.map(({ mark }) => mark));
  const open = await sql<{ id: number }[]>`select id from upgrade_attempts where closed_at is null`;
  const isOpen = new Set(open.map(({ id }) => id));
  const absent = reports.filter(({ mark }) => !stored.has(mark));
  const count = (outcome: SentReport["outcome"]) => absent.filter((report) => report.outcome === outcome).length;
  return {
    "reports answered 2xx and absent": count("stored"),
    "reports sent again ten times and absent": count("given-up"),
    "reports refused as late on an open attempt": reports.filter(
      ({ outcome, attemptId }) => outcome === "closed" && isOpen.has(attemptId),
    ).length,
  };
}

/** A line for each rollout: its places, and how it used them. */
export async function rolloutLines(sql: Sql): Promise<readonly string[]> {
  const rows = await sql.unsafe(`
    select f.version, d.name as product, r.max_concurrent, r.max_total, p.peak, c.*,
      (select count(*)::int from upgrade_attempts a where a.rollout_id = r.id) as attempts
    from rollouts r join firmware f on f.id = r.firmware_id join products d on d.id = f.product_id
    left join (${peaksBy("rollout_id")}) p on p.rollout_id = r.id left join (${COUNTED}) c on c.rollout_id = r.id
    order by r.id`);
  return rows.map((row) => {
    const { product, version, peak, granted, attempts, succeeded, failed } = row;
    const of = (cap: unknown) => (cap === null ? "" : ` of ${cap}`);
    return (
      `${product} ${version}: at most ${peak ?? 0}${of(row["max_concurrent"])} at once, ${granted ?? 0}${of(row["max_total"])} ` +
      `devices, ${attempts} attempts, ${succeeded ?? 0} succeeded, ${failed ?? 0} failed or timed out`
    );
  });
}
