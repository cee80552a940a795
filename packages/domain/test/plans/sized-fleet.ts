import {
  createGatewayToken,
  createRollout,
  type Database,
  hashToken,
  registerFirmware,
  releaseFirmware,
  takeRolloutStep,
} from "@ota/domain";
import type postgres from "postgres";
import { artifactOf } from "../support/fleet.ts";
import { type FleetSize, KINDS, PRODUCT } from "./fleet-data.ts";

export const SYSTEM = { kind: "system" } as const;

type Kind = keyof typeof KINDS;

/** Devices of each kind that a run gets to know: one is taken after the other, so that none is met twice. */
const SAMPLE = 1_000;

/** Few enough that all have asked before anything is timed. */
const RECURRING = 3;

/** A database of {@link fillFleet}, with what works need to know of it. */
export interface SizedFleet {
  readonly size: FleetSize;
  /** The newest version of the stable channel, and its firmware. */
  readonly newest: string;
  readonly newestFirmwareId: string;
  /** A rollout with devices on its allow-list. */
  readonly listedRolloutId: string;
  readonly gatewayHash: Uint8Array;
  /** Each of these gives another device with each call. */
  credentials(kind: Kind): { readonly tokenHash: Uint8Array; readonly serial?: string };
  /** The same few devices again and again, whose rows PostgreSQL has in its memory. */
  recurringCredentials(kind: Kind): { readonly tokenHash: Uint8Array };
  attempt(kind: Kind): { readonly tokenHash: Uint8Array; readonly attemptId: number };
  deviceId(kind: Kind): string;
  upgradeId(kind: Kind): string;
}

/** Puts into a filled database what the service's own functions make, and takes samples of its devices. */
export async function openSizedFleet(
  { db, client }: { readonly db: Database; readonly client: postgres.Sql },
  size: FleetSize,
): Promise<SizedFleet> {
  const newest = `1.0.${size.recordsPerDevice}`;
  await rollOutToBeta(db);
  const { token } = await createGatewayToken(db, { actor: SYSTEM, product: PRODUCT, name: "gateway" });
  const gatewayHash = hashToken(token);
  const [names] = await client<{ firmwareId: string; rolloutId: string }[]>`
    select f.public_id as "firmwareId", r.public_id as "rolloutId" from firmware f join rollouts r on r.firmware_id = f.id
    where f.version = ${newest}`;
  if (names === undefined) throw new Error(`The database has no ${newest}: it is not of fillFleet.`);
  const samples = new Map<Kind, Sample[]>();
  for (const kind of Object.keys(KINDS) as Kind[]) samples.set(kind, await sampleOf(client, { kind, size }));
  const next = (kind: Kind): Sample => {
    const sample = samples.get(kind)?.pop();
    if (sample === undefined) throw new Error(`The database has no ${kind} device left: take fewer runs.`);
    return sample;
  };
  const tokenOf = (n: number) => hashToken(`token-${n}`);
  let turn = 0;
  return {
    size,
    newest,
    newestFirmwareId: names.firmwareId,
    listedRolloutId: names.rolloutId,
    gatewayHash,
    credentials(kind) {
      const { n } = next(kind);
      return kind === "throughGateway" ? { tokenHash: gatewayHash, serial: `serial-${n}` } : { tokenHash: tokenOf(n) };
    },
    recurringCredentials(kind) {
      turn += 1;
      // Off the end that next() takes from.
      const sample = samples.get(kind)?.[turn % RECURRING];
      if (sample === undefined) throw new Error(`The database has no ${kind} device left: take fewer runs.`);
      return { tokenHash: tokenOf(sample.n) };
    },
    attempt(kind) {
      const { n, attemptId } = next(kind);
      return { tokenHash: tokenOf(n), attemptId };
    },
    deviceId: (kind) => next(kind).deviceId,
    upgradeId: (kind) => next(kind).upgradeId,
  };
}

/** A rollout with caps, so that attempts take places. A database that has been opened before has it. */
async function rollOutToBeta(db: Database): Promise<void> {
  const version = `2.0.${Date.now()}`;
  const artifact = artifactOf(version);
  const { id: firmwareId } = await registerFirmware(db, { actor: SYSTEM, product: PRODUCT, version, artifact });
  await releaseFirmware(db, { actor: SYSTEM, firmwareId });
  const caps = { maxConcurrent: 1_000_000, maxTotal: 10_000_000 };
  const { id: rolloutId } = await createRollout(db, { actor: SYSTEM, firmwareId, channel: "beta", ...caps });
  await takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: "start" });
}

interface Sample {
  readonly n: number;
  readonly deviceId: string;
  /** The newest. */
  readonly upgradeId: string;
  readonly attemptId: number;
}

/** Spread over all devices, in no order. Those whose newest attempt is not as it was filled have been used before. */
async function sampleOf(
  client: postgres.Sql,
  { kind, size }: { readonly kind: Kind; readonly size: FleetSize },
): Promise<Sample[]> {
  const [step, offset] = kind === "throughGateway" ? [100, KINDS[kind]] : [20, KINDS[kind]];
  const count = Math.floor(size.devices / step);
  const picked = Array.from({ length: Math.min(SAMPLE, count) }, (_, index) => {
    return Math.floor((index * count) / Math.min(SAMPLE, count)) * step + offset + (offset === 0 ? step : 0);
  });
  const rows = await client<(Sample & { attempts: number })[]>`
    select d.id::integer as n, d.public_id as "deviceId", u.public_id as "upgradeId", a.id as "attemptId"
    from unnest(${picked}::bigint[]) given join devices d on d.id = given
    join lateral (select * from upgrades where device_id = d.id order by id desc limit 1) u on true
    join lateral (select * from upgrade_attempts where upgrade_id = u.id order by n desc limit 1) a on true
    where a.last_seq = 2 and u.id <= ${size.devices * size.recordsPerDevice}
    order by md5(d.id::text)`;
  return [...rows];
}
