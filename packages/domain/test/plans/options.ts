import { parseArgs } from "node:util";
import type { FleetSize } from "./fleet-data.ts";

export const HELP = `Checks how PostgreSQL finds what the service asks for among many devices and records, and what that costs by their number.

  pnpm check:plans [options]

  --devices N   devices of the largest fleet, a multiple of 1000 (default 1000000)
  --records N   upgrade records of the largest fleet, a multiple of its devices (default 10000000); a tenth more attempts
                and two events of each attempt come with them
  --sizes N,N   devices of smaller fleets to compare with (default 10000,100000), as many records each
  --runs N      timed runs of each work in each fleet (default 40, at most 60: each takes devices of its own)
  --only WORD   only works whose name holds WORD
  --server URL  a PostgreSQL 15 or newer on this machine, as a superuser: databases ota_plans_… are made there and left,
                and taken again by the next run. Without it a private one is started, and removed at the end
  --help

Needs about 12 GB of disk and 20 minutes for its default on two cores. Exits with 1 when a table that grows was scanned, by
a plan or in fact.`;

export interface PlansOptions {
  /** The largest last. */
  readonly sizes: readonly FleetSize[];
  readonly runs: number;
  readonly only: string | undefined;
  readonly server: string | undefined;
}

/** @throws Error that says what is wrong with them. */
export function readOptions(args: string[]): PlansOptions | "help" {
  const { values } = parseArgs({
    args,
    options: {
      devices: { type: "string", default: "1000000" },
      records: { type: "string", default: "10000000" },
      sizes: { type: "string", default: "10000,100000" },
      runs: { type: "string", default: "40" },
      only: { type: "string" },
      server: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return "help";
  const devices = multiple("devices", values.devices, 1_000);
  const recordsPerDevice = multiple("records", values.records, devices) / devices;
  if (recordsPerDevice < 2) throw new Error("--records must be twice --devices at the least");
  const others = values.sizes.split(",").filter((size) => size !== "");
  const smaller = others.map((size) => multiple("sizes", size, 1_000)).filter((size) => size < devices);
  const all = [...new Set(smaller)].sort((a, b) => a - b).concat(devices);
  return {
    sizes: all.map((size) => ({ devices: size, recordsPerDevice })),
    runs: multiple("runs", values.runs, 1),
    only: values.only,
    server: values.server,
  };
}

function multiple(name: string, text: string, of: number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1 || value % of !== 0)
    throw new Error(`--${name} must be a whole multiple of ${of}, not ${text}`);
  return value;
}
