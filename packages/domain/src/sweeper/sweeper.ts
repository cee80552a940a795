import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, Lock, LockFactory, Logger } from "@ota/lock-core";
import type { Database } from "../database.ts";
import { type BackgroundJob, ensureJob, runBatch } from "./background-job.ts";

/** How the sweeper behaves. */
export interface SweeperSettings {
  /** Put before every key, so that several installations can share a lock store. @default "" */
  readonly lockKeyPrefix?: string;
  /** How long the store keeps the lease of a process that has died: then another one takes over. @default 10_000 */
  readonly lockTtlMs?: number;
  /**
   * What is done while the lock store is at fault: `proceed` without the lock, since the rows' locks alone keep batches
   * apart; or leave the jobs until it is back. @default "proceed"
   */
  readonly lockOutage?: "proceed" | "busy";
  /** The pause between two batches of one run, in which others get at the rows. @default 20 */
  readonly batchPauseMs?: number;
}

export interface SweeperOptions {
  readonly db: Database;
  readonly locks: LockFactory;
  /**
   * Whether the lock store's leases carry fencing tokens that grow from process to process. A store in memory has none of
   * that kind: its tokens begin anew with each process.
   */
  readonly fencing: boolean;
  readonly logger: Logger;
  readonly jobs: readonly BackgroundJob[];
  readonly settings?: SweeperSettings;
  /** Told of each batch that is committed. @default nobody looks on */
  readonly onBatch?: (batch: { readonly job: string; readonly rows: number }) => void;
}

/** Does what has to be done without anybody asking for it. One per process; one of all processes works on each job. */
export interface Sweeper {
  /** Begins, and goes on until it is stopped. */
  start(): void;
  /** Lets the batch under way finish and gives the locks back. */
  stop(): Promise<void>;
}

/**
 * Makes the sweeper of a process. Whoever gets a job's lock keeps it, and the job, until it is stopped, dies or fails:
 * then the next one that asks has it. A holder that was stopped past the end of its lease finds its next batch refused by
 * the job's row.
 */
export function createSweeper(options: SweeperOptions): Sweeper {
  const stopping = new AbortController();
  let running: Promise<unknown> = Promise.resolve();
  return {
    start() {
      const { signal } = stopping;
      running = Promise.all(options.jobs.map((job) => new JobLoop(job, options).run(signal)));
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** One job of one process. */
class JobLoop {
  readonly #job: BackgroundJob;
  readonly #options: SweeperOptions;
  readonly #settings: Required<SweeperSettings>;
  readonly #lock: Lock;
  readonly #key: string;
  #lease: Lease | undefined;
  #known = false;
  #lockFault = false;

  constructor(job: BackgroundJob, options: SweeperOptions) {
    this.#job = job;
    this.#options = options;
    this.#settings = { ...DEFAULTS, ...options.settings };
    const { lockKeyPrefix, lockTtlMs: ttlMs } = this.#settings;
    this.#key = `${lockKeyPrefix}ota:job:${job.name}`;
    this.#lock = options.locks.createLock(this.#key, { ttlMs, fencing: options.fencing, autoExtend: true });
  }

  async run(signal: AbortSignal): Promise<void> {
    // Processes that are started together do not ask together.
    while (await this.#pause(this.#job.intervalMs * (0.5 + Math.random() / 2), signal)) {
      try {
        await this.#runJob(signal);
      } catch (err) {
        this.#options.logger.warn({ job: this.#job.name, err }, "A background job has failed; it is tried again.");
        // Where this process cannot do it, another one may.
        await this.#giveUpLease();
      }
    }
    await this.#giveUpLease();
  }

  async #runJob(signal: AbortSignal): Promise<void> {
    const turn = await this.#turn();
    if (turn === "not-ours") return;
    const { db, logger, onBatch = () => {} } = this.#options;
    const { name } = this.#job;
    if (!this.#known) await ensureJob(db, this.#job);
    this.#known = true;

    let rows = 0;
    let more = true;
    while (more && !this.#lease?.isExpired()) {
      const result = await runBatch(db, { job: this.#job, fence: turn.fence });
      if (result === "superseded") {
        logger.warn({ job: name }, "A newer holder of the lock has done this background job; it is left to that one.");
        await this.#giveUpLease();
        break;
      }
      onBatch({ job: name, rows: result.rows });
      rows += result.rows;
      more = result.more && (await this.#pause(this.#settings.batchPauseMs, signal));
    }
    if (rows === 0) return;
    const level = this.#job.everyday ? "debug" : "info";
    logger[level]({ job: name, rows }, "A background job has done something.");
  }

  /** Whether this process is to do the job now, and with which token. */
  async #turn(): Promise<{ readonly fence: bigint | undefined } | "not-ours"> {
    if (this.#lease?.isExpired()) this.#lease = undefined;
    try {
      this.#lease ??= await this.#lock.tryAcquire();
    } catch (err) {
      return this.#withoutLock(err);
    }
    if (this.#lockFault) this.#options.logger.info({ key: this.#key }, "The lock of a background job answers again.");
    this.#lockFault = false;
    return this.#lease === undefined ? "not-ours" : { fence: this.#lease.fencingToken };
  }

  #withoutLock(err: unknown): { readonly fence: undefined } | "not-ours" {
    const { lockOutage: policy } = this.#settings;
    if (!this.#lockFault) {
      this.#options.logger.warn({ key: this.#key, err, policy }, "The lock store of a background job is at fault.");
    }
    this.#lockFault = true;
    return policy === "proceed" ? { fence: undefined } : "not-ours";
  }

  async #giveUpLease(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    try {
      await lease?.release();
    } catch (err) {
      this.#options.logger.warn({ key: this.#key, err }, "A background job's lock ends with its TTL: not released.");
    }
  }

  /** False, and at once, when the sweeper is stopped. */
  async #pause(ms: number, signal: AbortSignal): Promise<boolean> {
    // Rejects for no other reason than the signal.
    return sleep(ms, true, { signal, ref: false }).catch(() => false);
  }
}

const DEFAULTS: Required<SweeperSettings> = {
  lockKeyPrefix: "",
  lockTtlMs: 10_000,
  lockOutage: "proceed",
  batchPauseMs: 20,
};
