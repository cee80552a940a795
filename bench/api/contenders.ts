import { type FleetSize, serialOf, tokenOf, versionOf } from "./fleet.ts";
import { type Ask, requestText } from "./load.ts";
import { type Backends, type ServerProcess, startFloor, startService } from "./server-process.ts";

/** How many devices of each product there are to ask. */
export type Devices = Pick<FleetSize, "lamps" | "torches">;

/** One server under one load. */
export interface Contender {
  readonly name: string;
  /** Whose figures its own are compared with; none: it is a floor itself. */
  readonly floor?: string;
  readonly start: (backends: Backends) => Promise<ServerProcess>;
  /** How many of them share the connections. @default 1 */
  readonly processes?: number;
  /** Makes the questions of a whole run. */
  readonly ask: (fleet: Devices) => Ask;
}

/** Floors that others are compared with. */
export const FLOOR = {
  node: "node:http hello",
  express: "Express hello",
  select: "Express + one prepared SELECT",
  check: "Express + POST JSON + SELECT",
  create: "create: lock + SELECT + INSERT",
  constraint: "create: ON CONFLICT only",
  hot: "64 on one device: ON CONFLICT only",
} as const;

/** The loads on the service, as their names end. */
export const OURS = {
  steady: "steady check",
  two: "steady check, two processes",
  create: "check that creates",
  capped: "check that creates under a cap",
  hot: "64 on one device",
} as const;

/**
 * So many questions come for one device before the next one has its turn; the first 64 of them find no record. It is far
 * below what the service lets one device ask in a minute.
 */
const ASKS_PER_HOT_DEVICE = 640;

/** Written out within a turn, what checks leave for later counts where it was caused. */
const LAST_SEEN_FLUSH_MS = 1_000;

/** The floors, and the service of each folder of `apps/api` beside them, by the name that it is to have. */
export function contenders(services: ReadonlyMap<string, string>): readonly Contender[] {
  const all: Contender[] = [...floors()];
  let share = 0;
  for (const [label, folder] of services) {
    const start = (backends: Backends) =>
      startService({ ...backends, folder, keepWarm: true, lastSeenFlushMs: LAST_SEEN_FLUSH_MS });
    const part = { share: share++, of: services.size };
    all.push(
      {
        name: `${label}: ${OURS.steady}`,
        floor: FLOOR.check,
        start,
        ask: ({ lamps }) => checks("none", anyLamp(lamps)),
      },
      {
        name: `${label}: ${OURS.two}`,
        floor: FLOOR.check,
        start,
        processes: 2,
        ask: ({ lamps }) => checks("none", anyLamp(lamps)),
      },
      {
        name: `${label}: ${OURS.create}`,
        floor: FLOOR.create,
        start,
        ask: ({ torches }) => checks("update", newDevice("torch", torches, part)),
      },
      {
        name: `${label}: ${OURS.capped}`,
        floor: FLOOR.create,
        start,
        ask: ({ torches }) => checks("update", newDevice("ember", torches, part)),
      },
      {
        name: `${label}: ${OURS.hot}`,
        floor: FLOOR.hot,
        start,
        ask: ({ torches }) => checks("update", hotTorch(torches, part)),
      },
    );
  }
  return all;
}

/** Those whose name holds the word, with what they are compared with. */
export function only(word: string, all: readonly Contender[]): readonly Contender[] {
  const wanted = all.filter(({ name }) => name.includes(word));
  const floorsOfThem = new Set<string | undefined>([FLOOR.node, ...wanted.map(({ floor }) => floor)]);
  return all.filter((one) => wanted.includes(one) || floorsOfThem.has(one.name));
}

function floors(): readonly Contender[] {
  const hello = () => ({ next: () => requestText("GET", "/"), expect: "world" });
  const start = (file: string) => (backends: Backends) => startFloor(file, backends);
  const whole = { share: 0, of: 1 };
  // Which checks make a record, and know it: their tables are emptied before each round.
  const creations = ({ torches }: Devices) => floorChecks('"created":true', anyTorch(torches));
  return [
    { name: FLOOR.node, start: start("node-hello.ts"), ask: hello },
    { name: FLOOR.express, start: start("express-hello.ts"), ask: hello },
    {
      name: FLOOR.select,
      start: start("express-select.ts"),
      ask: ({ lamps }) => {
        const serial = anyLamp(lamps);
        return { next: () => requestText("GET", `/devices/${serial()}`), expect: '"reported_version"' };
      },
    },
    {
      name: FLOOR.check,
      start: start("express-post-select.ts"),
      ask: ({ lamps }) => floorChecks('"decision":"none"', anyLamp(lamps)),
    },
    { name: FLOOR.create, start: start("create-lock.ts"), ask: creations },
    { name: FLOOR.constraint, start: start("create-on-conflict.ts"), ask: creations },
    {
      name: FLOOR.hot,
      start: start("create-on-conflict.ts"),
      ask: ({ torches }) => floorChecks('"decision":"update"', hotTorch(torches, whole)),
    },
  ];
}

/** Which device asks next, by its serial. */
type NextSerial = () => string;

/**
 * Each of so many numbers once, and so on: a prime that divides none of those asked for leads through them in an order that no
 * cache likes. A fleet's devices ask in no order either.
 */
function mixed(count: number): () => number {
  let number = 0;
  return () => {
    number = (number + 7_919) % count;
    return number;
  };
}

/** Any device that has all its upgrades. */
export function anyLamp(lamps: number): NextSerial {
  const next = mixed(lamps);
  return () => serialOf("lamp", next());
}

/** Any device that has made no upgrade. */
function anyTorch(torches: number): NextSerial {
  const next = mixed(torches);
  return () => serialOf("torch", next());
}

interface Part {
  readonly share: number;
  readonly of: number;
}

/** Devices at the end of each part, for {@link hotTorch} alone. */
const HOT = 1_000;

/** Each device of a product in the caller's part once, none of which has a record. */
function newDevice(product: "torch" | "ember", devices: number, { share, of }: Part): NextSerial {
  const first = Math.floor((devices * share) / of);
  const count = Math.floor((devices * (share + 1)) / of) - HOT - first;
  const next = mixed(count);
  let asked = 0;
  return () => {
    if (asked++ === count) throw new Error("there are no more devices without a record: give more by --devices");
    return serialOf(product, first + next());
  };
}

/** One device many times, then the next one, from the end of the caller's part. */
function hotTorch(torches: number, { share, of }: Part): NextSerial {
  const last = Math.floor((torches * (share + 1)) / of) - 1;
  let asked = 0;
  return () => serialOf("torch", last - Math.floor(asked++ / ASKS_PER_HOT_DEVICE));
}

/** What a device sends to the service. */
export function checks(decision: "none" | "update", next: NextSerial): Ask {
  return {
    next() {
      const serial = next();
      return requestText("POST", "/v1/check", { token: tokenOf(serial), json: { version: versionOf(serial) } });
    },
    expect: `"decision":"${decision}"`,
  };
}

function floorChecks(expect: string, next: NextSerial): Ask {
  return {
    next() {
      const serial = next();
      return requestText("POST", "/check", { json: { serial, version: versionOf(serial) } });
    },
    expect,
  };
}
