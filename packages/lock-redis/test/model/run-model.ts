import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { RedisServer } from "@ota/testkit";
import { type Belief, type Line, type Progress, randomFrom } from "./belief.ts";
import type { BrokenKind } from "./broken-stores.ts";
import { contradictions } from "./check-history.ts";
import type { WorkerRequest } from "./worker.ts";

export interface ModelRun {
  readonly server: RedisServer;
  readonly seed: number;
  readonly processes: number;
  readonly actors: number;
  readonly operations: number;
  readonly keys: number;
  /** Every so often a process is killed, or stopped for longer than its leases last. Never, by default. */
  readonly harmEveryMs?: number;
  /** Between which limits the TTLs of most leases lie. */
  readonly ttlMs?: WorkerRequest["ttlMs"];
  readonly broken?: BrokenKind | undefined;
  readonly favours?: WorkerRequest["favours"];
  readonly onProgress?: (line: string) => void;
}

export interface ModelResult {
  /** Contradictions, complaints and leftovers: empty when the store did everything right. */
  readonly faults: readonly string[];
  readonly operations: number;
  readonly leases: number;
  readonly kills: number;
  readonly stops: number;
  /** How often each operation was begun, and each error code was its outcome. */
  readonly counts: Readonly<Record<string, number>>;
}

const workerFile = fileURLToPath(new URL("worker.ts", import.meta.url));
const DEFAULT_TTL_MS = { from: 15, to: 120 };
/** How much longer than its leases a process is stopped. */
const BEYOND_MS = 100;

/** Runs the processes to their end, and judges what they have written down. */
export async function runModel(run: ModelRun): Promise<ModelResult> {
  const directory = mkdtempSync(join(tmpdir(), "ota-model-"));
  try {
    return await runIn(directory, run);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function runIn(directory: string, run: ModelRun): Promise<ModelResult> {
  const random = randomFrom(run.seed);
  const harm = { kills: 0, stops: 0 };
  const files: string[] = [];
  const killed = new Set<string>();
  const living = new Map<ChildProcess, string>();
  const share = Math.ceil(run.operations / run.processes);

  async function keepRunning(index: number): Promise<void> {
    let left = share;
    for (let life = 1; left > 0; life++) {
      const name = `${index}.${life}`;
      const file = join(directory, name);
      files.push(file);
      const { actors, keys, ttlMs = DEFAULT_TTL_MS, broken, favours } = run;
      const seed = run.seed * 1_000_003 + index * 1_009 + life;
      const size = { operations: left, actors, keys, ttlMs };
      const request: WorkerRequest = { url: run.server.url, file, name, seed, ...size, broken, favours };
      const child = spawn(process.execPath, ["--conditions=@ota/source", workerFile, JSON.stringify(request)], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      let complaints = "";
      child.stderr?.on("data", (text) => (complaints += text));
      living.set(child, name);
      const [code] = await once(child, "exit");
      living.delete(child);
      if (code === 0) return;
      if (!killed.has(name)) throw new Error(`process ${name} ended by itself: ${complaints}`);
      left -= progressIn(readLines(file)).done;
    }
  }

  let ending = false;
  async function doHarm(everyMs: number): Promise<void> {
    while (!ending) {
      await sleep(everyMs * (0.5 + random()));
      const [child, name] = [...living][Math.floor(random() * living.size)] ?? [];
      if (ending || child === undefined || name === undefined || readLines(join(directory, name)).length === 0)
        continue;
      if (random() < 0.3) {
        killed.add(name);
        harm.kills += 1;
        child.kill("SIGKILL");
      } else {
        harm.stops += 1;
        child.kill("SIGSTOP");
        await sleep((run.ttlMs ?? DEFAULT_TTL_MS).to + BEYOND_MS);
        child.kill("SIGCONT");
      }
    }
  }
  async function report(): Promise<void> {
    while (!ending && run.onProgress !== undefined) {
      await sleep(5_000, undefined, { ref: false });
      const done = files.reduce((sum, file) => sum + progressIn(readLines(file)).done, 0);
      run.onProgress(`${done} of ${run.operations} operations, ${harm.kills} kills, ${harm.stops} stops`);
    }
  }

  const harming = run.harmEveryMs === undefined ? undefined : doHarm(run.harmEveryMs);
  void report();
  try {
    await Promise.all(Array.from({ length: run.processes }, (_, index) => keepRunning(index)));
  } finally {
    ending = true;
    for (const child of living.keys()) child.kill("SIGKILL");
  }
  await harming;

  const lines = files.flatMap(readLines);
  const beliefs = lines.filter((line): line is Belief => "lease" in line);
  const complaints = lines.flatMap((line) => ("complaint" in line ? [line.complaint] : []));
  const left = await leftovers(run, killed);
  const counts: Record<string, number> = {};
  for (const file of files) {
    for (const [name, count] of Object.entries(progressIn(readLines(file)).counts)) {
      counts[name] = (counts[name] ?? 0) + count;
    }
  }
  return {
    faults: [...contradictions(beliefs), ...complaints, ...left],
    operations: files.reduce((sum, file) => sum + progressIn(readLines(file)).done, 0),
    leases: new Set(beliefs.map(({ lease }) => lease)).size,
    ...harm,
    counts,
  };
}

/**
 * Locks that are still there though nobody is left who could hold them: those of the long kind at once, unless their
 * process was killed, and those of the short kind when their time is over.
 */
async function leftovers({ server, ttlMs = DEFAULT_TTL_MS }: ModelRun, killed: ReadonlySet<string>): Promise<string[]> {
  const keys = async (pattern: string) => (await server.cli("KEYS", pattern)).split("\n").filter((key) => key !== "");
  const long = (await keys("long:*")).filter((key) => !killed.has(key.split(":")[1] ?? ""));
  await sleep(ttlMs.to + BEYOND_MS);
  const short = await keys("short:*");
  return [...long, ...short].map((key) => `${key} was left behind`);
}

function progressIn(lines: readonly Line[]): Progress {
  return lines.findLast((line): line is Progress => "done" in line) ?? { done: 0, counts: {} };
}

function readLines(file: string): Line[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  lines.pop(); // What follows the last line break: nothing, or a line that a SIGKILL has cut off.
  return lines.map((line) => JSON.parse(line) as Line);
}
