import type { Contender, Devices } from "./contenders.ts";
import { cpuUsOf, cpuUsOfTree, rssMibOf } from "./cpu.ts";
import { type Ask, Clients } from "./load.ts";
import type { Backends, ServerProcess } from "./server-process.ts";

/** Clients of every load, each with a connection of its own. */
export const CONNECTIONS = 64;

/** What one contender has shown in one turn. */
export interface Turn {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly serverCpuUs: number;
  /** Of all PostgreSQL, for each answer. */
  readonly postgresCpuUs: number;
  /** Of both. */
  readonly cpuUs: number;
  readonly rssMib: number;
  readonly refused: number;
}

/** How long a turn takes. */
export interface TurnTimes {
  /** Load that is not measured: it lets the process before come to rest, and this one wake up. */
  readonly leadInMs: number;
  readonly measuredMs: number;
}

/** A contender's servers with their load, kept for the whole run so that all stay equally warm. */
export class Contestant implements AsyncDisposable {
  readonly contender: Contender;
  readonly #servers: readonly ServerProcess[];
  readonly #ask: Ask;

  private constructor(contender: Contender, parts: { servers: readonly ServerProcess[]; ask: Ask }) {
    this.contender = contender;
    this.#servers = parts.servers;
    this.#ask = parts.ask;
  }

  static async start(contender: Contender, backends: Backends, size: Devices): Promise<Contestant> {
    const servers: ServerProcess[] = [];
    // One by one: the first one of an empty database makes what the others find.
    for (let n = 0; n < (contender.processes ?? 1); n += 1) servers.push(await contender.start(backends));
    return new Contestant(contender, { servers, ask: contender.ask(size) });
  }

  async turn(postgresPid: number, { leadInMs, measuredMs }: TurnTimes): Promise<Turn> {
    // Anew for each turn: a server closes connections that idle through those of the others.
    const ports = this.#servers.map(({ port }) => port);
    using clients = await Clients.connect(ports, CONNECTIONS);
    if (leadInMs > 0) await clients.run(this.#ask, leadInMs);
    const serverBefore = this.#sum(cpuUsOf);
    const postgresBefore = cpuUsOfTree(postgresPid);
    const { answered, refused, elapsedMs, latenciesMs } = await clients.run(this.#ask, measuredMs);
    const serverCpuUs = (this.#sum(cpuUsOf) - serverBefore) / answered;
    const postgresCpuUs = (cpuUsOfTree(postgresPid) - postgresBefore) / answered;
    return {
      perSecond: (answered / elapsedMs) * 1000,
      p50Ms: quantile(latenciesMs, 0.5),
      p99Ms: quantile(latenciesMs, 0.99),
      serverCpuUs,
      postgresCpuUs,
      cpuUs: serverCpuUs + postgresCpuUs,
      rssMib: this.#sum(rssMibOf),
      refused,
    };
  }

  #sum(of: (pid: number) => number): number {
    return this.#servers.reduce((total, { pid }) => total + of(pid), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) await server[Symbol.asyncDispose]();
  }
}

/** Each figure's own median. */
export function medianTurn(turns: readonly Turn[]): Turn {
  const of = (figure: keyof Turn): number => median(turns.map((turn) => turn[figure]));
  return {
    perSecond: of("perSecond"),
    p50Ms: of("p50Ms"),
    p99Ms: of("p99Ms"),
    serverCpuUs: of("serverCpuUs"),
    postgresCpuUs: of("postgresCpuUs"),
    cpuUs: of("cpuUs"),
    rssMib: of("rssMib"),
    refused: of("refused"),
  };
}

export function median(values: readonly number[]): number {
  return quantile(Float64Array.from(values).sort(), 0.5);
}

function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
