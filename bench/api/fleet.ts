import postgres, { type TransactionSql } from "postgres";
import { SERVICE_OPERATOR_KEY, type ServicePlace, startService } from "./server-process.ts";

/** What the devices of each product run and report. */
const VERSIONS = { lamp: "2.0.0", torch: "1.0.0", ember: "1.0.0" } as const;

type Product = keyof typeof VERSIONS;

/** How much a fleet holds. */
export interface FleetSize {
  /** Devices that have made all their upgrades. */
  readonly lamps: number;
  /** Devices that have made none, and have one to come; there are as many `ember`s. */
  readonly torches: number;
  /** Upgrade records of each lamp, 1 at the least. */
  readonly records: number;
}

/**
 * Fills an empty database: product `lamp` with devices that have made all their upgrades, products `torch` and `ember`
 * with devices that have made none, the latter under a cap. Products and firmware come by the API, the devices by plain SQL: there are many.
 */
export async function fillFleet(place: ServicePlace, size: FleetSize): Promise<void> {
  await releaseFirmware(place, size.records);
  const sql = postgres(place.databaseUrl, { max: 1, onnotice: () => {} });
  try {
    await sql.begin(async (tx) => {
      await insertDevices(tx, size);
      await insertRecords(tx);
      await createFloorTables(tx);
    });
    await sql`vacuum analyze`;
  } finally {
    await sql.end();
  }
}

/** The serial of a device. */
export function serialOf(product: Product, number: number): string {
  return `${product}-${number}`;
}

/** The token that a device has in this benchmark alone. */
export function tokenOf(serial: string): string {
  return `token-of-the-benchmark-${serial}`;
}

/** What a device runs. */
export function versionOf(serial: string): string {
  return VERSIONS[serial.slice(0, serial.indexOf("-")) as Product];
}

async function releaseFirmware(place: ServicePlace, records: number): Promise<void> {
  await using service = await startService(place);
  const call = caller(service.port);
  for (const name of Object.keys(VERSIONS)) await call("/v1/products", { name });
  await release(call, "lamp", VERSIONS.lamp);
  // Older ones, of which the devices have made the upgrades as well.
  for (let patch = 1; patch < records; patch += 1) await release(call, "lamp", `1.0.${patch}`);
  await release(call, "torch", "2.0.0");
  const capped = await release(call, "ember", "2.0.0", { startRollout: false });
  const rollout = await call(`/v1/firmware/${capped.id}/rollouts`, { maxConcurrent: 1_000_000_000 });
  await call(`/v1/rollouts/${rollout.id}/start`, {});
}

type Call = (path: string, body: object | Buffer) => Promise<{ readonly id: string }>;

function caller(port: number): Call {
  return async (path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${SERVICE_OPERATOR_KEY}`,
        ...(body instanceof Buffer ? {} : { "content-type": "application/json" }),
      },
      body: body instanceof Buffer ? new Uint8Array(body) : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as { id: string };
  };
}

async function release(
  call: Call,
  product: Product,
  version: string,
  { startRollout } = { startRollout: true },
): Promise<{ readonly id: string }> {
  const { id } = await call(
    `/v1/products/${product}/firmware?version=${version}`,
    Buffer.from(`${product} ${version}`),
  );
  await call(`/v1/firmware/${id}/release`, { startRollout });
  return { id };
}

async function insertDevices(tx: TransactionSql, { lamps, torches }: FleetSize): Promise<void> {
  // Foreign keys and triggers are for those who could be wrong; without them a million rows take a minute.
  await tx`set local session_replication_role = replica`;
  await tx`
    insert into devices (public_id, product_id, serial, token_hash, channel, reported_version, confirmed_version)
    select gen_random_uuid(), p.id, d.serial, sha256(convert_to('token-of-the-benchmark-' || d.serial, 'UTF8')), 'stable',
      case p.name when 'lamp' then ${VERSIONS.lamp} else ${VERSIONS.torch} end,
      case p.name when 'lamp' then ${VERSIONS.lamp} end
    from products p, generate_series(1, case p.name when 'lamp' then ${lamps}::integer else ${torches}::integer end) n,
      lateral (select p.name || '-' || n - 1 as serial) d
    order by p.id, n`;
}

async function insertRecords(tx: TransactionSql): Promise<void> {
  await tx`
    insert into upgrades (public_id, device_id, firmware_id, rollout_id)
    select gen_random_uuid(), d.id, f.id, r.id
    from products p join firmware f on f.product_id = p.id join rollouts r on r.firmware_id = f.id
    join devices d on d.product_id = p.id
    where p.name = 'lamp' order by f.id, d.id`;
  await tx`
    insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, last_seq, closed_at)
    select id, device_id, firmware_id, rollout_id, 1, 'succeeded', 1, now() from upgrades order by id`;
  await tx`insert into attempt_events (attempt_id, seq, to_state) select id, 1, 'succeeded' from upgrade_attempts`;
}

const FLOOR_TABLES = ["floor_locked", "floor_constrained"];

/** Removes what the floors have recorded, so that they can record it again. */
export async function emptyFloorTables(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    for (const name of FLOOR_TABLES) await sql`truncate ${sql(name)}`;
  } finally {
    await sql.end();
  }
}

async function createFloorTables(tx: TransactionSql): Promise<void> {
  for (const name of FLOOR_TABLES) {
    await tx`
      create table ${tx(name)} (
        id bigint generated always as identity primary key,
        device_id bigint not null, firmware_id bigint not null, created_at timestamptz not null default now(),
        unique (device_id, firmware_id)
      )`;
  }
}
