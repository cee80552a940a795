import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { type RedisServer, startRedis } from "@ota/testkit";
import { CONTENDERS, type ContenderName } from "./contenders.ts";
import { type Contention, measureContention, measureThroughput, median, medians, type Throughput } from "./measures.ts";
import { type Report, reportText } from "./report.ts";
import { WorkerProcess } from "./worker-process.ts";

const HELP = `Measures the lock packages beside their floors and peers, on a private redis-server.

  pnpm bench:locks [options]

  --rounds N    interleaved rounds of the throughput measures (default 9); those of contention are a third as many
  --out FILE    also write the tables to FILE
  --only WORD   only contenders whose name holds WORD, beside the floor
  --help

Takes about four minutes. Figures are medians; throughput is a ratio to the floor of the same round.`;

const CONCURRENCIES = [1, 16, 256];
const TURN_MS = 400;
const CONTENTION_MS = 1_500;

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "9" },
    out: { type: "string" },
    only: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

if (options.help) console.log(HELP);
else await main();

async function main(): Promise<void> {
  const rounds = Number(options.rounds);
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new Error(`--rounds must be a whole number from 1, not ${options.rounds}`);
  const names = (Object.keys(CONTENDERS) as ContenderName[]).filter(
    (name) => name === "floor" || name.includes(options.only ?? ""),
  );
  await using redis = await startRedis();
  const report: Report = {
    throughput: await throughput(redis, { names, rounds }),
    oneProcess: await contention(redis, { names, rounds: Math.ceil(rounds / 3), processes: 1, waiters: 32 }),
    twoProcesses: await contention(redis, { names, rounds: Math.ceil(rounds / 3), processes: 2, waiters: 16 }),
    ...(await burstsAndMemory(redis, names)),
  };
  const text = reportText(report, { rounds });
  console.log(`\n${text}`);
  if (options.out !== undefined) await writeFile(options.out, text);
}

/** Every contender in turn, in each round at each concurrency, so that all meet the same machine. */
async function throughput(
  redis: RedisServer,
  { names, rounds }: { readonly names: readonly ContenderName[]; readonly rounds: number },
): Promise<Report["throughput"]> {
  const workers = new Map<ContenderName, WorkerProcess>();
  for (const name of names) workers.set(name, await WorkerProcess.start(name, redis.url));
  const measured = new Map<ContenderName, Map<number, { ratio: number; figures: Throughput }[]>>();
  // The first round only warms up.
  for (let round = 0; round <= rounds; round++) {
    progress(round === 0 ? "warming up" : `throughput, round ${round} of ${rounds}`);
    for (const concurrency of CONCURRENCIES) {
      const turns = new Map<ContenderName, Throughput>();
      for (const [name, worker] of workers) {
        turns.set(name, await measureThroughput(worker, redis, { concurrency, durationMs: TURN_MS }));
      }
      const floor = turns.get("floor")?.pairsPerSecond ?? Number.NaN;
      if (round === 0) continue;
      for (const [name, figures] of turns) {
        const byConcurrency = measured.get(name) ?? new Map();
        measured.set(name, byConcurrency);
        const list = byConcurrency.get(concurrency) ?? [];
        byConcurrency.set(concurrency, list);
        list.push({ ratio: figures.pairsPerSecond / floor, figures });
      }
    }
  }
  for (const worker of workers.values()) await worker[Symbol.asyncDispose]();
  return [...measured].map(([name, byConcurrency]) => ({
    name,
    at: [...byConcurrency].map(([concurrency, list]) => ({
      concurrency,
      ratio: median(list.map(({ ratio }) => ratio)),
      figures: {
        pairsPerSecond: median(list.map(({ figures }) => figures.pairsPerSecond)),
        cpuUsPerPair: median(list.map(({ figures }) => figures.cpuUsPerPair)),
        redisCpuUsPerPair: median(list.map(({ figures }) => figures.redisCpuUsPerPair)),
        commandsPerPair: median(list.map(({ figures }) => figures.commandsPerPair)),
      },
    })),
  }));
}

/** Every contender in turn, in each round; the first only warms up. */
async function contention(
  redis: RedisServer,
  load: {
    readonly names: readonly ContenderName[];
    readonly rounds: number;
    readonly processes: number;
    readonly waiters: number;
  },
): Promise<Report["oneProcess"]> {
  const { rounds, processes, waiters } = load;
  const crews = new Map<ContenderName, readonly WorkerProcess[]>();
  for (const name of load.names.filter(canWait)) {
    const starting = Array.from({ length: processes }, () => WorkerProcess.start(name, redis.url));
    crews.set(name, await Promise.all(starting));
  }
  const measured = new Map<ContenderName, { timesFloor: number; figures: Contention }[]>();
  for (let round = 0; round <= rounds; round++) {
    progress(`${processes} × ${waiters} waiters, ${round === 0 ? "warming up" : `round ${round} of ${rounds}`}`);
    const turns = new Map<ContenderName, Contention>();
    for (const [name, crew] of crews) {
      const durationMs = round === 0 ? 500 : CONTENTION_MS;
      turns.set(name, await measureContention(crew, { key: `bench:contended:${name}`, waiters, durationMs }));
    }
    const floor = turns.get("floor")?.turnsPerSecond ?? Number.NaN;
    if (round === 0) continue;
    for (const [name, figures] of turns) {
      const list = measured.get(name) ?? [];
      measured.set(name, list);
      list.push({ timesFloor: figures.turnsPerSecond / floor, figures });
    }
  }
  for (const worker of [...crews.values()].flat()) await worker[Symbol.asyncDispose]();
  return [...measured].map(([name, list]) => ({
    name,
    timesFloor: median(list.map(({ timesFloor }) => timesFloor)),
    figures: medians(list.map(({ figures }) => figures)),
  }));
}

async function burstsAndMemory(
  redis: RedisServer,
  names: readonly ContenderName[],
): Promise<Pick<Report, "bursts" | "heap">> {
  const bursts: { name: ContenderName; medianMs: number }[] = [];
  const heap: { name: ContenderName; bytes: number }[] = [];
  for (const name of names.filter((one) => !one.startsWith("bare"))) {
    progress(`burst and memory: ${name}`);
    await using worker = await WorkerProcess.start(name, redis.url);
    if (canWait(name)) {
      const times: number[] = [];
      for (let round = 0; round < 6; round++) {
        const elapsedMs = await worker.run({ kind: "burst", key: `bench:burst:${round}`, waiters: 32 });
        if (round > 0) times.push(elapsedMs);
      }
      bursts.push({ name, medianMs: median(times) });
    }
    heap.push({ name, bytes: await worker.run({ kind: "memory", count: 10_000 }) });
  }
  return { bursts, heap };
}

/** A bare socket has no way to wait. */
function canWait(name: ContenderName): boolean {
  return !name.startsWith("bare");
}

function progress(text: string): void {
  process.stderr.write(`${new Date().toTimeString().slice(0, 8)}  ${text}\n`);
}
