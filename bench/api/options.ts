import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

export const HELP = `Measures the service beside its floors: a private PostgreSQL, a private redis-server, 64 connections.

  pnpm bench:api [options]

  --quick            small fleets, short turns: to see that it works, about two minutes
  --rounds N         interleaved rounds (default 7; quick 3)
  --devices N        devices that have made their upgrades (default 100000; quick 50000); four times as many have not
  --records N        upgrade records of each device that has made its upgrades (default 1)
  --sizes N,N,…      sizes of fleet to compare (default 10000,100000,1000000; quick 2000,20000)
  --memory-seconds N how long memory is watched under load (default 600; quick 20)
  --service FOLDER   the apps/api folder to measure, built (default: that of this working copy)
  --beside NAME=FOLDER  another one, measured in the same run; may be given several times
  --only WORD        only contenders whose name holds WORD, beside their floors; nothing of sizes and memory
  --out FILE         also write the tables to FILE
  --help

Takes about 25 minutes. Throughput is a ratio within one round, all else a median; figures of different runs do not compare.`;

/** What a run is to do. */
export interface RunOptions {
  readonly rounds: number;
  readonly devices: number;
  readonly records: number;
  readonly sizes: readonly number[];
  readonly warmUpMs: number;
  readonly turnMs: number;
  readonly memorySeconds: number;
  /** The folder of `apps/api`. */
  readonly service: string;
  /** Others, by the name that they are to have. */
  readonly beside: ReadonlyMap<string, string>;
  readonly only: string | undefined;
  readonly out: string | undefined;
}

const FULL = {
  ...{ rounds: 7, devices: 100_000, sizes: [10_000, 100_000, 1_000_000] },
  ...{ warmUpMs: 6_000, turnMs: 3_000, memorySeconds: 600 },
};
const QUICK = {
  ...{ rounds: 3, devices: 50_000, sizes: [2_000, 20_000] },
  ...{ warmUpMs: 3_000, turnMs: 1_500, memorySeconds: 20 },
};

/** @throws Error that says what is wrong with them. */
export function readOptions(args: string[]): RunOptions | "help" {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      devices: { type: "string" },
      records: { type: "string" },
      sizes: { type: "string" },
      "memory-seconds": { type: "string" },
      service: { type: "string" },
      beside: { type: "string", multiple: true, default: [] },
      only: { type: "string" },
      out: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return "help";
  const { rounds, devices, sizes, memorySeconds, ...times } = values.quick ? QUICK : FULL;
  return {
    ...times,
    rounds: whole("rounds", values.rounds, rounds),
    devices: whole("devices", values.devices, devices),
    records: whole("records", values.records, 1),
    sizes: values.sizes === undefined ? sizes : values.sizes.split(",").map((size) => whole("sizes", size, 0)),
    memorySeconds: whole("memory-seconds", values["memory-seconds"], memorySeconds),
    service: resolve(values.service ?? fileURLToPath(new URL("../../apps/api", import.meta.url))),
    beside: new Map(values.beside.map(named)),
    only: values.only,
    out: values.out,
  };
}

function named(text: string): readonly [string, string] {
  const [, name, folder] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || folder === undefined) throw new Error(`--beside must be NAME=FOLDER, not ${text}`);
  return [name, resolve(folder)];
}

function whole(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name} must be a whole number from 1, not ${text}`);
  return value;
}
