import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import type { Session } from "./contender.ts";
import { CONTENDERS, type ContenderName } from "./contenders.ts";

/** What the main process asks of a worker. */
export type Task =
  | { readonly kind: "pairs"; readonly concurrency: number; readonly durationMs: number }
  | { readonly kind: "contention"; readonly key: string; readonly waiters: number; readonly durationMs: number }
  | { readonly kind: "burst"; readonly key: string; readonly waiters: number }
  | { readonly kind: "memory"; readonly count: number }
  | { readonly kind: "close" };

export interface PairsResult {
  readonly pairs: number;
  readonly elapsedMs: number;
  readonly cpuUs: number;
  readonly commands: number;
}

/** One turn at the key that everybody wants: who had it, and when on the clock that all processes share. */
export interface Turn {
  readonly waiter: string;
  readonly waitMs: number;
  readonly enteredAtMs: number;
  readonly leftAtMs: number;
}

export interface ContentionResult {
  readonly turns: readonly Turn[];
  readonly commands: number;
}

/** How long the key is held in each turn. */
const HOLD_MS = 1;

let commands = 0;
countCommands();
const [name = "", url = ""] = process.argv.slice(2);
const session: Session = await CONTENDERS[name as ContenderName](url);
let nextKey = 0;

process.on("message", (task: Task) => {
  void perform(task).then((result) => {
    if (task.kind !== "close") process.send?.(result);
    else process.disconnect();
  });
});
process.send?.("ready");

async function perform(task: Task): Promise<unknown> {
  switch (task.kind) {
    case "pairs":
      return await pairs(task);
    case "contention":
      return await contend(task);
    case "burst":
      return await burst(task);
    case "memory":
      return await heapPerHolder(task.count);
    case "close":
      return await session.close();
  }
}

async function pairs({ concurrency, durationMs }: Task & { readonly kind: "pairs" }): Promise<PairsResult> {
  let done = 0;
  const commandsBefore = commands;
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  const endAt = startedAt + durationMs;
  await parallel(concurrency, async () => {
    while (performance.now() < endAt) {
      await session.pair(`bench:${process.pid}:${nextKey++}`);
      done++;
    }
  });
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    pairs: done,
    elapsedMs: performance.now() - startedAt,
    cpuUs: user + system,
    commands: commands - commandsBefore,
  };
}

async function contend({
  key,
  waiters,
  durationMs,
}: Task & { readonly kind: "contention" }): Promise<ContentionResult> {
  const turns: Turn[] = [];
  const commandsBefore = commands;
  const endAt = now() + durationMs;
  await parallel(waiters, async (index) => {
    while (now() < endAt) await takeTurn(key, `${process.pid}:${index}`, turns);
  });
  // Who is served only after the end had to wait for the others to stop.
  return { turns: turns.filter(({ enteredAtMs }) => enteredAtMs < endAt), commands: commands - commandsBefore };
}

/** Milliseconds until all of a crowd that came at once has been served. */
async function burst({ key, waiters }: Task & { readonly kind: "burst" }): Promise<number> {
  const startedAt = now();
  await parallel(waiters, (index) => takeTurn(key, String(index), []));
  return now() - startedAt;
}

async function takeTurn(key: string, waiter: string, turns: Turn[]): Promise<void> {
  const startedAt = now();
  let enteredAtMs = 0;
  let leftAtMs = 0;
  await session.waitFor?.(key, async () => {
    enteredAtMs = now();
    await sleep(HOLD_MS);
    leftAtMs = now();
  });
  turns.push({ waiter, waitMs: enteredAtMs - startedAt, enteredAtMs, leftAtMs });
}

/** Bytes of heap for each lock that is held. */
async function heapPerHolder(count: number): Promise<number> {
  const held: unknown[] = [];
  await session.hold?.("warm-up");
  gc();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < count; index++) held.push(await session.hold?.(`held:${process.pid}:${index}`));
  gc();
  const bytes = (process.memoryUsage().heapUsed - before) / count;
  return held.length === count ? bytes : Number.NaN;
}

function gc(): void {
  if (globalThis.gc === undefined) throw new Error("run the worker with --expose-gc");
  for (let round = 0; round < 3; round++) globalThis.gc();
}

async function parallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, index) => work(index)));
}

/** Milliseconds on the monotonic clock, which all processes of the machine share. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Counts what any client of this process sends to Redis, in a pipeline or not. */
function countCommands(): void {
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function counted(...parameters) {
    commands++;
    return sendCommand.apply(this, parameters);
  };
}
