import { eq, type SQL, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import type { DeviceFacts, DeviceHistory, RolloutPlaces, UpgradeRecord } from "../decide/facts.ts";
import { type DeviceCredentials, holdsToken, isServedByGateway } from "../devices/credentials.ts";
import { requireSerial } from "../devices/device-fields.ts";
import { fixedPiece } from "../fixed-statement.ts";
import { devices, products, rolloutCounters, rolloutDevices, upgradeAttempts, upgrades } from "../schema/index.ts";
import type { AttemptState, CancelOutcome } from "../vocabulary.ts";

/** What one statement says about a device: a consistent snapshot of everything that a check needs beside the catalog. */
export interface DeviceState {
  readonly device: DeviceFacts & {
    readonly publicId: string;
    readonly serial: string;
    /** When it last told its attributes of its own accord; `null`: never. */
    readonly attributesToldAt: Date | null;
    /** Whether it is asked for no consent. */
    readonly autoConfirms: boolean;
  };
  readonly product: {
    readonly id: bigint;
    readonly name: string;
    readonly pollIntervalSeconds: number;
    readonly catalogRevision: bigint;
  };
  readonly history: DeviceHistory;
  /** Of the product's running rollouts that count their places. */
  readonly places: ReadonlyMap<bigint, RolloutPlaces>;
  /** The database's time. */
  readonly now: Date;
}

/**
 * Reads a device's state by its credentials, as statements that are built once for the life of `db`. It throws INVALID_FIELD
 * on a serial that no device can have.
 */
export function prepareDeviceState(db: Database): (by: DeviceCredentials) => Promise<DeviceState | undefined> {
  const tokenHash = sql.placeholder("tokenHash");
  const byToken = selectDeviceState(db, holdsToken(tokenHash)).prepare("device_state_by_token");
  const served = isServedByGateway({ tokenHash, serial: sql.placeholder("serial") });
  const byGateway = selectDeviceState(db, served).prepare("device_state_by_gateway");
  return async ({ tokenHash, serial, ownSerial }) => {
    if (serial !== undefined) requireSerial("serial", serial);
    const query = serial === undefined ? byToken : byGateway;
    const [row] = await query.execute({ tokenHash: Buffer.from(tokenHash), serial });
    if (row === undefined || (ownSerial !== undefined && ownSerial !== row.device.serial)) return undefined;
    return toDeviceState(row);
  };
}

/** Reads a device's state by its internal id, within a transaction. */
export async function loadDeviceState(tx: Database, deviceId: bigint): Promise<DeviceState | undefined> {
  const [row] = await selectDeviceState(tx, eq(devices.id, deviceId));
  return row === undefined ? undefined : toDeviceState(row);
}

/**
 * All attempts of the device, oldest record first, as JSON: one row per device instead of one per attempt, in a form that
 * every driver reads alike. Ids beyond int32 are text in it.
 */
const attemptsJson = fixedPiece(sql<AttemptTuple[] | null>`(
  select json_agg(
    json_build_array(
      ${upgrades.id}::text, ${upgrades.publicId}, ${upgrades.firmwareId}::text, ${upgrades.attemptsForgiven},
      ${upgradeAttempts.id}, ${upgradeAttempts.n}, ${upgradeAttempts.rolloutId}::text, ${upgradeAttempts.state},
      ${upgradeAttempts.cancelOutcome}, (extract(epoch from ${upgradeAttempts.closedAt}) * 1000)::float8
    ) order by ${upgrades.id}, ${upgradeAttempts.n}
  )
  from ${upgrades} join ${upgradeAttempts} on ${upgradeAttempts.upgradeId} = ${upgrades.id}
  where ${upgrades.deviceId} = ${devices.id}
)`);

type AttemptTuple = readonly [
  upgradeId: string,
  publicId: string,
  firmwareId: string,
  attemptsForgiven: number,
  id: number,
  n: number,
  rolloutId: string,
  state: AttemptState,
  cancelOutcome: CancelOutcome | null,
  closedAtMs: number | null,
];

/** The rollouts on whose allow-lists the device is. */
const allowedByJson = fixedPiece(sql<string[] | null>`(
  select json_agg(${rolloutDevices.rolloutId}::text) from ${rolloutDevices}
  where ${rolloutDevices.deviceId} = ${devices.id}
)`);

/** The places of the product's rollouts that count them and run now: few, and none for most products. */
const placesJson = fixedPiece(sql<PlacesTuple[] | null>`(
  select json_agg(
    json_build_array(
      ${rolloutCounters.rolloutId}::text, ${rolloutCounters.live}, ${rolloutCounters.granted},
      ${rolloutCounters.reached} is not null
    )
  )
  from ${rolloutCounters} where ${rolloutCounters.productId} = ${devices.productId}
)`);

type PlacesTuple = readonly [rolloutId: string, live: number, granted: number, thresholdReached: boolean];

function selectDeviceState(db: Database, where: SQL | undefined) {
  return db
    .select({
      device: {
        id: devices.id,
        publicId: devices.publicId,
        serial: devices.serial,
        channel: devices.channel,
        hardwareRevision: devices.hardwareRevision,
        reportedVersion: devices.reportedVersion,
        confirmedVersion: devices.confirmedVersion,
        blocked: devices.blocked,
        groups: devices.groups,
        attributes: devices.attributes,
        timeZone: devices.timeZone,
        attributesToldAt: devices.attributesToldAt,
        autoConfirms: sql<boolean>`${devices.autoConfirm} is not null`,
      },
      product: {
        id: products.id,
        name: products.name,
        pollIntervalSeconds: products.pollIntervalSeconds,
        catalogRevision: products.catalogRevision,
      },
      attempts: attemptsJson,
      allowedBy: allowedByJson,
      places: placesJson,
      now: sql`now()`.mapWith(devices.createdAt),
    })
    .from(devices)
    .innerJoin(products, eq(products.id, devices.productId))
    .where(where);
}

function toDeviceState(row: Awaited<ReturnType<typeof selectDeviceState>>[number]): DeviceState {
  const { product, attempts, now } = row;
  const device = { ...row.device, allowedBy: (row.allowedBy ?? []).map(BigInt) };
  return { device, product, history: { records: toRecords(attempts ?? []) }, places: toPlaces(row.places ?? []), now };
}

function toPlaces(tuples: readonly PlacesTuple[]): ReadonlyMap<bigint, RolloutPlaces> {
  return new Map(
    tuples.map(([rolloutId, live, granted, thresholdReached]) => [
      BigInt(rolloutId),
      { live, granted, thresholdReached },
    ]),
  );
}

function toRecords(tuples: readonly AttemptTuple[]): readonly UpgradeRecord[] {
  const records = new Map<string, UpgradeRecord & { readonly attempts: UpgradeRecord["attempts"][number][] }>();
  for (const [upgradeId, publicId, firmwareId, attemptsForgiven, ...attempt] of tuples) {
    let record = records.get(upgradeId);
    if (record === undefined) {
      record = {
        id: BigInt(upgradeId),
        publicId,
        firmwareId: BigInt(firmwareId),
        attemptsForgiven,
        attempts: [],
      };
      records.set(upgradeId, record);
    }
    const [id, n, rolloutId, state, cancelOutcome, closedAtMs] = attempt;
    const closedAt = closedAtMs === null ? null : new Date(closedAtMs);
    record.attempts.push({ id, n, rolloutId: BigInt(rolloutId), state, cancelOutcome, closedAt });
  }
  return [...records.values()];
}
