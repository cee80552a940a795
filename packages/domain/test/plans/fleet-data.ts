import postgres from "postgres";
import { type MigrationTimes, migrateToFirst, migrateToNewest } from "./first-schema.ts";
import { withoutIndexes } from "./without-indexes.ts";

/** How much data there is. Each device has the same number of records, so that sizes differ in nothing else. */
export interface FleetSize {
  /** A multiple of 1000. */
  readonly devices: number;
  readonly recordsPerDevice: number;
}

/** The rows of one insert, so that several connections share the work. */
const CHUNK = 2_000_000;

/** What all devices of the data belong to. */
export const PRODUCT = "fleet";

/**
 * Fills an empty database: in the first schema, which the migrations then find with data in it. Device n has the token
 * `token-n` and the serial `serial-n`, and a record for each of the versions 1.0.1, 1.0.2, …; what became of the last one
 * hangs on n modulo 20 (see {@link KINDS}).
 */
export async function fillFleet(
  url: string,
  { size, progress }: { readonly size: FleetSize; readonly progress: (text: string) => void },
): Promise<MigrationTimes> {
  const client = postgres(url, { max: 4, onnotice: () => {}, connection: FILLING });
  try {
    await migrateToFirst(client);
    await client.unsafe(catalogSql(size));
    progress("devices, records, attempts, events");
    await withoutIndexes(client, ["devices", "upgrades", "upgrade_attempts", "attempt_events", "audit_log"], {
      fill: () => Promise.all(insertsOf(size).map((text) => client.unsafe(text))),
      beforeIndexes: () => progress("indexes"),
    });
    await client.unsafe(SEQUENCES);
    progress("analysing");
    await client.unsafe("vacuum (analyze) attempt_events");
    await Promise.all(
      ["devices", "upgrades", "upgrade_attempts", "audit_log"].map((table) =>
        client.unsafe(`vacuum (analyze) ${table}`),
      ),
    );
    progress("migrating from the first schema to the newest");
    const times = await migrateToNewest(url);
    progress(`migrated in ${(times.totalMs / 1000).toFixed(1)} s`);
    await client.unsafe(newerColumnsSql());
    progress("analysing");
    await Promise.all(ANALYSED.map((table) => client.unsafe(`vacuum (analyze) ${table}`)));
    await untilIndexesAreUsed(client);
    return times;
  } finally {
    await client.end();
  }
}

/**
 * PostgreSQL does not use an index that was made over rows with older versions until no transaction of the whole server,
 * other tests' among them, is as old as the index.
 */
async function untilIndexesAreUsed(client: postgres.Sql): Promise<void> {
  for (;;) {
    const [row] = await client<{ waiting: number }[]>`
      select count(*)::int as waiting from pg_index
      where indcheckxmin and xmin::text::bigint >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint`;
    if (row?.waiting === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Triggers and foreign keys are for those who could be wrong. */
const FILLING = { session_replication_role: "replica", maintenance_work_mem: "512MB" };

const ANALYSED = [
  "devices",
  "upgrade_attempts",
  "rollout_devices",
  "rollouts",
  "firmware",
  "figures",
  "products",
  "upgrades",
];

/** What device n is here, by n modulo 20: each test that uses devices up has a kind of its own. */
export const KINDS = {
  ofGroups: 0,
  open: 1,
  upToDate: 3,
  toReachVersion: 4,
  toBegin: 6,
  toSucceed: 7,
  throughGateway: 8,
  newToBeta: 9,
  failed: 11,
  toDelete: 13,
  toCancel: 15,
  silent: 16,
} as const;

const LIVE = `n % 20 in (1, 4, 6, 7, 15, 16)`;

function catalogSql({ recordsPerDevice }: FleetSize): string {
  return `
    insert into products (name, version_scheme, confirm_by, poll_interval_seconds) values ('${PRODUCT}', 'semver', 'version', 300);
    insert into firmware
      (public_id, product_id, version, canonical_version, state, size_bytes, sha256, sha1, md5, file_name, content_type, released_at)
      select gen_random_uuid(), 1, '1.0.' || k, '1.0.' || k, 'released', 1, encode(sha256(k::text::bytea), 'hex'),
        repeat('0', 40), repeat('0', 32), 'firmware.bin', 'application/octet-stream', now()
      from generate_series(1, ${recordsPerDevice}) k;
    insert into rollouts (public_id, firmware_id, channel, state)
      select gen_random_uuid(), id, 'stable', 'running' from firmware order by id;
  `;
}

/** The rows are in the order of time: one version after the other, and each for device after device. */
function insertsOf({ devices, recordsPerDevice }: FleetSize): readonly string[] {
  const records = devices * recordsPerDevice;
  const newest = recordsPerDevice;
  const state = `case
    when k = ${newest} and ${LIVE} then (array['offered', 'downloading', 'installing'])[1 + n / 20 % 3]
    when n % 20 = 11 then 'failed' when n % 20 = 12 then 'timed_out' when n % 20 = 14 then 'superseded' else 'succeeded' end`;
  // A step to the next version.
  const rollout = `case when n % 20 = 14 and k < ${newest} then k + 1 else k end`;
  const attempt = (of: {
    readonly id: string;
    readonly number: 1 | 2;
    readonly state: string;
    readonly where: string;
  }) =>
    chunks(records).map(
      (rows) => `
        insert into upgrade_attempts
          (id, upgrade_id, device_id, firmware_id, rollout_id, n, state, last_seq, failure_message, opened_at, updated_at, closed_at)
        overriding system value
        select ${of.id}, u, n, k, ${rollout}, ${of.number}, state, 2, case state when 'failed' then 'no space left: ' || n % 7 end, at, at,
          case when state not in ('offered', 'downloading', 'installing') then at end
        from ${rows} u,
          lateral (select 1 + (u - 1) / ${devices} as k, 1 + (u - 1) % ${devices} as n) record,
          lateral (select ${of.state} as state, ${atOf(newest)} as at) told
        where ${of.where}`,
    );
  return [
    ...chunks(records).map(
      (rows) => `
        insert into upgrades (id, public_id, device_id, firmware_id, rollout_id, from_version, created_at)
        overriding system value
        select u, gen_random_uuid(), n, k, k, '1.0.' || k - 1, ${atOf(newest)}
        from ${rows} u, lateral (select 1 + (u - 1) / ${devices} as k, 1 + (u - 1) % ${devices} as n) record`,
    ),
    // One record in ten has two attempts, of which the first has failed.
    ...attempt({ id: "u", number: 1, state: `case n % 10 when 2 then 'failed' else ${state} end`, where: "true" }),
    ...attempt({ id: `${records} + (u + 9) / 10`, number: 2, state, where: "n % 10 = 2" }),
    ...chunks(records + records / 10).map(
      (rows) => `
        insert into attempt_events (attempt_id, seq, from_state, to_state, received_at)
        select a, seq, case seq when 2 then 'offered' end, case seq when 1 then 'offered' else 'succeeded' end, now()
        from ${rows} a, generate_series(1, 2) seq`,
    ),
    `insert into devices
        (id, public_id, product_id, serial, token_hash, channel, reported_version, confirmed_version, last_seen_at, blocked)
      overriding system value
      select n, gen_random_uuid(), 1, 'serial-' || n, sha256(convert_to('token-' || n, 'UTF8')),
        case n % 10 when 9 then 'beta' else 'stable' end,
        '1.0.' || case when ${LIVE} or n % 20 in (11, 12, 14) then ${newest - 1} else ${newest} end,
        '1.0.' || ${newest - 1}, now(), n % 1000 = 17
      from generate_series(1, ${devices}) n`,
    `insert into audit_log (public_id, at, actor_kind, actor_key_id, actor_name, action, subject_id)
      select gen_random_uuid(), now() - interval '1 second' * (${devices} - n), 'operator', ${OPERATOR_ID_SQL}, 'somebody',
        'device.register', 'device-' || n
      from generate_series(1, ${devices}) n`,
  ];
}

/** Of one of a hundred operators. */
const OPERATOR_ID_SQL = `('00000000-0000-4000-8000-0000000000' || lpad((n % 100)::text, 2, '0'))::uuid`;
export const OPERATOR_ID = "00000000-0000-4000-8000-000000000042";

/** A version a month, the newest one yesterday. */
function atOf(newest: number): string {
  return `now() - interval '1 day' * ((${newest} - k) * 30 + 1) - interval '1 second' * (n % 3600)`;
}

function chunks(rows: number): readonly string[] {
  const starts = Array.from({ length: Math.ceil(rows / CHUNK) }, (_, index) => index * CHUNK);
  return starts.map((start) => `generate_series(${start + 1}, ${Math.min(start + CHUNK, rows)})`);
}

const SEQUENCES = ["devices", "upgrades", "upgrade_attempts"]
  .map((table) => `select setval(pg_get_serial_sequence('${table}', 'id'), (select max(id) from ${table}))`)
  .join(";");

/** Two hundred of them, so that what there is of each product and rollout is not read by way of all. */
export const OTHER_PRODUCTS = `
  insert into products (name, version_scheme, confirm_by, poll_interval_seconds)
    select 'other-' || n, 'semver', 'version', 300 from generate_series(1, 200) n;
  insert into firmware
    (public_id, product_id, version, canonical_version, state, size_bytes, sha256, sha1, md5, file_name, content_type, released_at)
    select gen_random_uuid(), p.id, '1.0.' || k, '1.0.' || k, 'released', 1, encode(sha256((p.name || k)::bytea), 'hex'),
      repeat('0', 40), repeat('0', 32), 'firmware.bin', 'application/octet-stream', now()
    from products p, generate_series(1, 10) k where p.name like 'other-%';
  insert into rollouts (public_id, firmware_id, channel, state)
    select gen_random_uuid(), f.id, 'stable', 'running' from firmware f join products p on p.id = f.product_id
    where p.name like 'other-%';
  insert into figures (kind, owner_id, key, count)
    select 'rollout_state', r.id, key, 5
    from rollouts r join firmware f on f.id = r.firmware_id join products p on p.id = f.product_id,
      unnest(array['offered', 'failed', 'succeeded', 'superseded']) key
    where p.name like 'other-%';
  insert into figures (kind, owner_id, key, count)
    select 'rollout_step_state', r.id, r.firmware_id - 1 || ':succeeded', 1
    from rollouts r join firmware f on f.id = r.firmware_id join products p on p.id = f.product_id
    where p.name like 'other-%';
  insert into figures (kind, owner_id, key, count)
    select 'product_version', p.id, '1.0.' || k, 5 from products p, generate_series(1, 10) k where p.name like 'other-%';
`;

/** What the first schema has no place for. */
function newerColumnsSql(): string {
  return `
    update devices set
      groups = array[case when id % 20000 = 0 then 'rare' else 'g' || id % 500 end],
      attributes = jsonb_build_object('modem', (id % 300)::text, 'old', case when id % 20000 = 0 then 'yes' else 'no' end)
      where id % 10 = 0;
    update devices set token_hash = null where id % 100 = 8;
    update upgrade_attempts set deadline_at = now() - interval '1 hour'
      where id in (select a.id from upgrade_attempts a where a.closed_at is null and a.device_id % 20 = 16);
    insert into rollout_devices (rollout_id, device_id)
      select (select max(id) from rollouts), id from devices where id % 10 = 3;
    ${OTHER_PRODUCTS}
  `;
}
