import { type SQL, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import type { DeviceFacts, DeviceHistory, RolloutPlaces, UpgradeRecord } from "../decide/facts.ts";
import { type FixedStatement, fixedPiece, fixedStatement } from "../fixed-statement.ts";
import type { DeviceAttributes } from "../schema/devices.ts";
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
  /** What tells whether the state is still as it was read. */
  readonly seen: SeenState;
}

/** A device's row and history, as they were read, for a statement that compares them. */
export interface SeenState {
  /** The transaction that wrote the row: PostgreSQL's `xmin`. */
  readonly rowWriter: string;
  /** {@link attemptsText} */
  readonly attempts: string | null;
}

/** Reads a device's state by its internal id. */
export async function loadDeviceState(db: Database, deviceId: bigint): Promise<DeviceState | undefined> {
  const [found] = await stateById(db, { deviceId });
  return found?.state;
}

/**
 * All attempts of the device, oldest record first, as one text: words by spaces, attempts by commas. An open attempt lacks
 * the last word. It is one row for each device instead of one for each attempt, it is the same from every driver, and
 * PostgreSQL takes half as long for it as for JSON.
 */
export const attemptsText = fixedPiece(sql`(
  select string_agg(
    concat_ws(
      ' ', ${upgrades.id}, ${upgrades.publicId}, ${upgrades.firmwareId}, ${upgrades.attemptsForgiven},
      ${upgradeAttempts.id}, ${upgradeAttempts.n}, ${upgradeAttempts.rolloutId}, ${upgradeAttempts.state},
      coalesce(${upgradeAttempts.cancelOutcome}, '-'), date_part('epoch', ${upgradeAttempts.closedAt}) * 1000
    ), ',' order by ${upgrades.id}, ${upgradeAttempts.n}
  )
  from ${upgrades} join ${upgradeAttempts} on ${upgradeAttempts.upgradeId} = ${upgrades.id}
  where ${upgrades.deviceId} = ${devices.id}
)`);

/** The rollouts on whose allow-lists the device is. */
const allowedByText = fixedPiece(sql`(
  select string_agg(${rolloutDevices.rolloutId}::text, ',') from ${rolloutDevices}
  where ${rolloutDevices.deviceId} = ${devices.id}
)`);

/** The places of the product's rollouts that count them and run now: few, and none for most products. */
const placesText = fixedPiece(sql`(
  select string_agg(
    concat_ws(
      ' ', ${rolloutCounters.rolloutId}, ${rolloutCounters.live}, ${rolloutCounters.granted},
      ${rolloutCounters.reached} is not null
    ), ','
  )
  from ${rolloutCounters} where ${rolloutCounters.productId} = ${devices.productId}
)`);

/** In the order of {@link StateValues}. */
const columns = fixedPiece(sql`
  ${devices.id}, ${devices.publicId}, ${devices.serial}, ${devices.channel}, ${devices.hardwareRevision},
  ${devices.reportedVersion}, ${devices.confirmedVersion}, ${devices.blocked}, ${devices.groups}, ${devices.attributes},
  ${devices.timeZone}, date_part('epoch', ${devices.attributesToldAt}) * 1000, ${devices.autoConfirm} is not null,
  ${products.id}, ${products.name}, ${products.pollIntervalSeconds}, ${products.catalogRevision},
  ${attemptsText}, ${allowedByText}, ${placesText}, date_part('epoch', now()) * 1000, ${devices}.xmin::text
`);

/** As the drivers give them: a `bigint` as text or as a number. */
type StateValues = readonly [
  ...device: [
    ...[id: string | number, publicId: string, serial: string, channel: string, hardwareRevision: string | null],
    ...[reportedVersion: string | null, confirmedVersion: string | null, blocked: boolean, groups: readonly string[]],
    ...[attributes: DeviceAttributes, timeZone: string | null, attributesToldMs: number | null, autoConfirms: boolean],
  ],
  ...product: [id: string | number, name: string, pollIntervalSeconds: number, catalogRevision: string | number],
  ...rest: [attempts: string | null, allowedBy: string | null, places: string | null, nowMs: number, rowWriter: string],
];

/** A state, and the place of its credentials among those that were given; `1` where there was one. */
export interface PlacedState {
  readonly place: number;
  readonly state: DeviceState;
}

/** The statement that reads the states of those devices that a join picks; `place` is of the credentials that did. */
export function stateStatement({
  place,
  from,
}: {
  readonly place: SQL;
  readonly from: SQL;
}): FixedStatement<PlacedState> {
  return fixedStatement(
    sql`select ${place}, ${columns} from ${from} join ${products} on ${products.id} = ${devices.productId}`,
    ([at, ...values]) => ({ place: Number(at), state: toDeviceState(values as unknown as StateValues) }),
  );
}

const stateById = stateStatement({
  place: sql`1`,
  from: sql`(select ${sql.placeholder("deviceId")}::bigint as id) given join ${devices} on ${devices.id} = given.id`,
});

function toDeviceState(values: StateValues): DeviceState {
  const [id, publicId, serial, channel, hardwareRevision, reportedVersion, confirmedVersion, ...more] = values;
  const [blocked, groups, attributes, timeZone, toldMs, autoConfirms, productId, name, pollIntervalSeconds, ...rest] =
    more;
  const [catalogRevision, attempts, allowedBy, places, nowMs, rowWriter] = rest;
  return {
    device: {
      ...{ id: BigInt(id), publicId, serial, channel, hardwareRevision, reportedVersion, confirmedVersion, blocked },
      ...{ groups, attributes, timeZone, autoConfirms, allowedBy: items(allowedBy).map(BigInt) },
      attributesToldAt: toldMs === null ? null : new Date(Math.round(toldMs)),
    },
    product: { id: BigInt(productId), name, pollIntervalSeconds, catalogRevision: BigInt(catalogRevision) },
    history: { records: toRecords(attempts) },
    places: toPlaces(places),
    now: new Date(Math.floor(nowMs)),
    seen: { rowWriter, attempts },
  };
}

function items(text: string | null): readonly string[] {
  return text === null ? [] : text.split(",");
}

function toPlaces(text: string | null): ReadonlyMap<bigint, RolloutPlaces> {
  const places = new Map<bigint, RolloutPlaces>();
  for (const item of items(text)) {
    const [rolloutId = "", live, granted, reached] = item.split(" ");
    places.set(BigInt(rolloutId), { live: Number(live), granted: Number(granted), thresholdReached: reached === "t" });
  }
  return places;
}

type OpenRecord = UpgradeRecord & { readonly attempts: UpgradeRecord["attempts"][number][] };

/** Reads {@link attemptsText}. */
function toRecords(text: string | null): readonly UpgradeRecord[] {
  const records: OpenRecord[] = [];
  let last: string | undefined;
  for (const item of items(text)) {
    const [upgradeId = "", publicId = "", firmwareId = "", forgiven, ...attempt] = item.split(" ");
    const [id, n, rolloutId = "", state, outcome, closedMs] = attempt;
    if (upgradeId !== last) {
      const attemptsForgiven = Number(forgiven);
      records.push({ id: BigInt(upgradeId), publicId, firmwareId: BigInt(firmwareId), attemptsForgiven, attempts: [] });
      last = upgradeId;
    }
    records.at(-1)?.attempts.push({
      ...{ id: Number(id), n: Number(n), rolloutId: BigInt(rolloutId), state: state as AttemptState },
      cancelOutcome: outcome === "-" ? null : (outcome as CancelOutcome),
      closedAt: closedMs === undefined ? null : new Date(Math.round(Number(closedMs))),
    });
  }
  return records;
}
