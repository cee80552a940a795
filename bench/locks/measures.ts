import type { RedisServer } from "@ota/testkit";
import type { Turn } from "./worker.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** What one contender showed without contention, in one round. */
export interface Throughput {
  readonly pairsPerSecond: number;
  readonly cpuUsPerPair: number;
  readonly redisCpuUsPerPair: number;
  readonly commandsPerPair: number;
}

/** What one contender showed while many wanted one key. */
export interface Contention {
  readonly starved: number;
  readonly jain: number;
  readonly waitP99Ms: number;
  readonly commandsPerTurn: number;
  /** Between one holder's end and the next one's begin, where the next one is another waiter. */
  readonly handOffP50Ms: number;
  /** Of all turns, those that went to another waiter than the one before. */
  readonly handedOn: number;
  readonly turnsPerSecond: number;
}

export async function measureThroughput(
  worker: WorkerProcess,
  redis: RedisServer,
  load: { readonly concurrency: number; readonly durationMs: number },
): Promise<Throughput> {
  const cpuBefore = await redisCpuUs(redis);
  const { pairs, elapsedMs, cpuUs, commands } = await worker.run({ kind: "pairs", ...load });
  const redisCpu = (await redisCpuUs(redis)) - cpuBefore;
  return {
    pairsPerSecond: (pairs / elapsedMs) * 1000,
    cpuUsPerPair: cpuUs / pairs,
    redisCpuUsPerPair: redisCpu / pairs,
    commandsPerPair: commands / pairs,
  };
}

/** `waiters` in each of the processes want one key for `durationMs`. */
export async function measureContention(
  workers: readonly WorkerProcess[],
  load: { readonly key: string; readonly waiters: number; readonly durationMs: number },
): Promise<Contention> {
  const results = await Promise.all(workers.map((worker) => worker.run({ kind: "contention", ...load })));
  const turns = results.flatMap((result) => result.turns).sort((a, b) => a.enteredAtMs - b.enteredAtMs);
  const commands = results.reduce((sum, result) => sum + result.commands, 0);
  return summarise(turns, { waiters: load.waiters * workers.length, commands, durationMs: load.durationMs });
}

function summarise(
  turns: readonly Turn[],
  facts: { readonly waiters: number; readonly commands: number; readonly durationMs: number },
): Contention {
  const byWaiter = new Map<string, number>();
  for (const { waiter } of turns) byWaiter.set(waiter, (byWaiter.get(waiter) ?? 0) + 1);
  const counts = [...byWaiter.values(), ...Array<number>(facts.waiters - byWaiter.size).fill(0)];
  const sum = counts.reduce((total, count) => total + count, 0);
  const squares = counts.reduce((total, count) => total + count * count, 0);
  const handOffs = turns.flatMap((turn, index) => {
    const before = turns[index - 1];
    return before === undefined || before.waiter === turn.waiter ? [] : [turn.enteredAtMs - before.leftAtMs];
  });
  return {
    starved: counts.filter((count) => count <= 1).length,
    jain: (sum * sum) / (counts.length * squares),
    waitP99Ms: quantile(
      turns.map(({ waitMs }) => waitMs),
      0.99,
    ),
    commandsPerTurn: facts.commands / turns.length,
    handOffP50Ms: quantile(handOffs, 0.5),
    handedOn: handOffs.length / Math.max(1, turns.length - 1),
    turnsPerSecond: (turns.length / facts.durationMs) * 1000,
  };
}

/** The median of each figure by itself. */
export function medians(rounds: readonly Contention[]): Contention {
  const of = (figure: keyof Contention): number => median(rounds.map((round) => round[figure]));
  return {
    starved: of("starved"),
    jain: of("jain"),
    waitP99Ms: of("waitP99Ms"),
    commandsPerTurn: of("commandsPerTurn"),
    handOffP50Ms: of("handOffP50Ms"),
    handedOn: of("handedOn"),
    turnsPerSecond: of("turnsPerSecond"),
  };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

async function redisCpuUs(redis: RedisServer): Promise<number> {
  const info = await redis.cli("info", "cpu");
  const seconds = (field: string) => Number(new RegExp(`^${field}:([\\d.]+)`, "m").exec(info)?.[1]);
  return (seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread")) * 1e6;
}
