import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresServer, RedisServer } from "@ota/testkit";
import type { SeededRandom } from "./seeded-random.ts";
import type { ServiceFleet } from "./service-fleet.ts";

const KINDS = ["API killed", "Redis killed", "Redis shut down", "PostgreSQL killed", "PostgreSQL shut down"] as const;
type FaultKind = (typeof KINDS)[number];

/** How many faults of each kind there are. */
export type FaultCounts = Readonly<Record<FaultKind, number>>;

interface PlannedFault {
  /** When so much of the work is done: 0 to 1. */
  readonly at: number;
  readonly kind: FaultKind;
  /** Which process, where it is one. */
  readonly target: number;
}

/** What can be broken. */
export interface Breakable {
  readonly services: ServiceFleet;
  readonly redis: RedisServer;
  readonly postgres: PostgresServer;
}

/**
 * Breaks parts of the service at drawn moments of a run, in a drawn order, and starts each again at once. The moments are
 * parts of the work done, not times: a slow machine meets the same faults as a fast one.
 */
export class StormFaults {
  readonly #planned: PlannedFault[];
  readonly #parts: Breakable;
  readonly #log: (line: string) => void;
  #breaking: Promise<void> = Promise.resolve();
  #done = 0;

  constructor(input: {
    readonly counts: FaultCounts;
    readonly random: SeededRandom;
    readonly parts: Breakable;
    readonly log: (line: string) => void;
  }) {
    const { counts, random, parts } = input;
    this.#parts = parts;
    this.#log = input.log;
    const kinds = random.shuffled(KINDS.flatMap((kind) => Array.from({ length: counts[kind] }, () => kind)));
    // Within the first eight tenths, so that each is felt; one after the other, with some room between them.
    this.#planned = kinds.map((kind, index) => ({
      at: (0.8 * (index + 0.1 + 0.8 * random.unit())) / kinds.length,
      kind,
      target: random.below(parts.services.size),
    }));
  }

  /** How many of the faults have been. */
  get done(): number {
    return this.#done;
  }

  /** Begins what is due when so much of the work is done: 0 to 1. Faults do not overlap. */
  due(part: number): void {
    for (let next = this.#planned[0]; next !== undefined && next.at <= part; next = this.#planned[0]) {
      this.#planned.shift();
      const { kind, target } = next;
      this.#breaking = this.#breaking.then(() => this.#break(kind, target));
      // Thrown again by `ended`; nobody else waits for it.
      this.#breaking.catch(() => {});
    }
  }

  /** Resolves when everything that was broken runs again. Rejects where something does not. */
  async ended(): Promise<void> {
    await this.#breaking;
    await this.#parts.services.allUp();
  }

  async #break(kind: FaultKind, target: number): Promise<void> {
    const { services, redis, postgres } = this.#parts;
    const beganAt = performance.now();
    switch (kind) {
      case "API killed":
        await services.kill(target);
        break;
      case "Redis shut down":
        await redis.cli("shutdown", "nosave");
        await redis.restart();
        break;
      case "Redis killed":
        await redis.restart();
        break;
      case "PostgreSQL shut down":
        // PostgreSQL's fast shutdown: it ends every session and closes its files.
        process.kill(postgres.pid, "SIGINT");
        await untilGone(postgres.pid);
        await postgres.restart();
        break;
      case "PostgreSQL killed":
        await postgres.restart();
        break;
    }
    this.#done += 1;
    const tookMs = Math.round(performance.now() - beganAt);
    this.#log(kind === "API killed" ? `${kind}: process ${target}` : `${kind}, up again after ${tookMs} ms`);
  }
}

async function untilGone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ESRCH") return;
      throw error;
    }
    await sleep(10);
  }
}
