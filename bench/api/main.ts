import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PostgresServer, type RedisServer, startPostgres, startRedis } from "@ota/testkit";
import { contenders, OURS, only } from "./contenders.ts";
import { emptyFloorTables, fillFleet } from "./fleet.ts";
import { measureMemory } from "./memory.ts";
import { HELP, type RunOptions, readOptions } from "./options.ts";
import { type Report, reportText } from "./report.ts";
import { type RoundsPlan, runRounds, type Standing } from "./rounds.ts";
import type { Backends } from "./server-process.ts";

/** What a PostgreSQL for so many devices would be given: sizes are to be compared, not what fits into its default. */
const POSTGRES_SETTINGS = { shared_buffers: "1GB", max_wal_size: "8GB" };

/** Each creating check uses up one: a run makes some hundred thousand. */
const TORCHES_PER_LAMP = 4;

const options = readOptions(process.argv.slice(2));
if (options === "help") console.log(HELP);
else await main(options);

async function main(run: RunOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ota-bench-"));
  try {
    await using postgres = await startPostgres({ settings: POSTGRES_SETTINGS });
    await using redis = await startRedis();
    const text = reportText(await measure(run, { postgres, redis, folder }));
    console.log(`\n${text}`);
    if (run.out !== undefined) await writeFile(run.out, text);
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface Servers {
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
  /** Of temporary files. */
  readonly folder: string;
}

async function measure(run: RunOptions, servers: Servers): Promise<Report> {
  const services = new Map([["ours", run.service], ...run.beside]);
  const all = run.only === undefined ? contenders(services) : only(run.only, contenders(services));
  const plan = { ...run, postgresPid: servers.postgres.pid, progress };
  const { devices } = run;
  const size = { lamps: devices, torches: devices * TORCHES_PER_LAMP * services.size };
  const backends = await fleet(servers, { run, ...size });

  progress("contenders in turns");
  const standings = await runRounds(
    all.map((contender) => ({ contender, backends, size })),
    { ...plan, beforeRound: () => emptyFloorTables(backends.databaseUrl) },
  );
  const memory = new Map();
  const report = { run, contenders: all, labels: [...services.keys()], standings, sizes: [], memory };
  if (run.only !== undefined) return report;
  for (const [label, folder] of services) {
    progress(`memory of ${label}, ${run.memorySeconds} s`);
    memory.set(label, await measureMemory(backends, { folder, devices, seconds: run.memorySeconds }));
  }
  return { ...report, sizes: await bySize(run, { servers, plan }) };
}

/** Steady checks of fleets of several sizes, each in a database of its own, in turns. */
async function bySize(
  run: RunOptions,
  { servers, plan }: { readonly servers: Servers; readonly plan: RoundsPlan },
): Promise<readonly { readonly devices: number; readonly standing: Standing }[]> {
  const [steady] = contenders(new Map([["ours", run.service]])).filter(({ name }) => name.endsWith(OURS.steady));
  if (steady === undefined) throw new Error("there is no steady check");
  const entries = [];
  for (const devices of run.sizes) {
    const backends = await fleet(servers, { run, lamps: devices, torches: 1 });
    const size = { lamps: devices, torches: 1 };
    entries.push({ contender: { ...steady, name: String(devices) }, backends, size });
  }
  progress("steady checks by the size of the fleet");
  const standings = await runRounds(entries, plan);
  return standings.map((standing) => ({ devices: Number(standing.name), standing }));
}

async function fleet(
  { postgres, redis, folder }: Servers,
  { run, lamps, torches }: { readonly run: RunOptions; readonly lamps: number; readonly torches: number },
): Promise<Backends> {
  progress(`filling a database: ${lamps + torches} devices, ${lamps * run.records} upgrade records`);
  const backends = {
    databaseUrl: await postgres.createDatabase(),
    redisUrl: redis.url,
    artifactDirectory: await mkdtemp(join(folder, "artifacts-")),
  };
  await fillFleet({ ...backends, folder: run.service }, { lamps, torches, records: run.records });
  return backends;
}

function progress(text: string): void {
  process.stderr.write(`${new Date().toTimeString().slice(0, 8)}  ${text}\n`);
}
