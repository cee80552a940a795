/**
 * One process of the model run: several actors, each with a store of its own, do random operations on a few keys, and
 * write what they believe into a file, synchronously, so that the lines survive a SIGKILL.
 */
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lease, LockError, LockFactory, type LockStore } from "@ota/lock-core";
import { RedisStore } from "@ota/lock-redis";
import { Redis } from "ioredis";
import { type Line, monotonicNow, randomFrom } from "./belief.ts";
import { BROKEN_STORES, type BrokenKind } from "./broken-stores.ts";

export interface WorkerRequest {
  readonly url: string;
  readonly file: string;
  readonly name: string;
  readonly seed: number;
  readonly operations: number;
  readonly actors: number;
  readonly keys: number;
  /** Of the locks whose leases end in the middle of the run. */
  readonly ttlMs: { readonly from: number; readonly to: number };
  readonly broken?: BrokenKind | undefined;
  /** What holders do more often than anything else. */
  readonly favours?: "handOver" | undefined;
}

/** Of those that are to be gone by an undoing, not by their end. */
const LONG_TTL_MS = 600_000;
/** With as many readers as writers, there would hardly be a moment at which a writer gets in. */
const MODES = ["exclusive", "exclusive", "exclusive", "shared"] as const;
const TEN = Array.from({ length: 10 });

const request = JSON.parse(process.argv[2] as string) as WorkerRequest;
const TTL_MS = request.ttlMs;
const random = randomFrom(request.seed);
const file = openSync(request.file, "a");
const client = new Redis(request.url);
const counts: Record<string, number> = {};
let begun = 0;
let leases = 0;

const write = (line: Line) => void writeSync(file, `${JSON.stringify(line)}\n`);
const between = ({ from, to }: { from: number; to: number }) => Math.round(from + random() * (to - from));
const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** One lease, and what its holder has written down about it. */
interface Held {
  readonly id: string;
  readonly lease: Lease;
}

class Actor {
  readonly #store = new RedisStore(client, { peers: pick(["any", "any", "node-only"]) });
  readonly #locks = new LockFactory(this.#tested(), { fencing: true, retryDelayMs: 20, logger: silent });
  #held: Held | undefined;

  async step(): Promise<void> {
    const operation = this.#held === undefined ? pick(this.#whenFree) : pick(this.#whenHeld);
    begun += 1;
    if (begun % 20 === 0) write({ done: begun, counts });
    count(operation.name);
    try {
      await operation.call(this);
    } catch (error) {
      if (error instanceof LockError) count(error.code);
      else write({ complaint: `${operation.name}: ${String(error)}` });
    }
    if (this.#held?.lease.isExpired() === true) this.#held = undefined;
  }

  async end(): Promise<void> {
    if (this.#held !== undefined) await this.release();
    await this.#store.close();
  }

  async tryAcquire(): Promise<void> {
    const lease = await this.#lock().tryAcquire({ mode: pick(MODES) });
    if (lease !== undefined) this.#hold(lease);
  }

  async acquire(): Promise<void> {
    const waitTimeoutMs = between({ from: 0, to: 150 });
    this.#hold(await this.#lock().acquire({ mode: pick(MODES), waitTimeoutMs }));
  }

  /** On a key of this process alone, which must be free again when the process has ended in order. */
  async abort(): Promise<void> {
    const lock = this.#locks.createLock(`long:${request.name}:${pick([1, 2])}`, { ttlMs: LONG_TTL_MS });
    const signal = AbortSignal.timeout(between({ from: 1, to: 6 }));
    try {
      await (await lock.acquire({ signal, waitTimeoutMs: 50 })).release();
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) throw error;
    }
  }

  async extend(): Promise<void> {
    const ttlMs = between(TTL_MS);
    await this.#change(ttlMs, (lease) => lease.extend(ttlMs));
  }

  async promote(): Promise<void> {
    const ttlMs = between(TTL_MS);
    await this.#change(ttlMs, (lease) => lease.promote(ttlMs));
  }

  async demote(): Promise<void> {
    const ttlMs = between(TTL_MS);
    // Readers may come in from now on.
    await this.#change(ttlMs, (lease) => lease.demote(ttlMs), "shared");
  }

  async release(): Promise<void> {
    this.#write({ until: 0 });
    const { lease } = this.#held as Held;
    this.#held = undefined;
    await lease.release();
  }

  async isHeld(): Promise<void> {
    await this.#held?.lease.isHeld();
  }

  /** Gives the lease away, and takes it over again after a while, in which it may have ended. */
  async handOver(): Promise<void> {
    const { id, lease } = this.#held as Held;
    this.#write({ until: 0 });
    this.#held = undefined;
    const json = JSON.stringify(lease);
    await sleep(pick([0, 5, TTL_MS.to + 20]));
    const restored = await this.#locks.restore(json, { ttlMs: between(TTL_MS) });
    if (restored !== undefined) this.#hold(restored, id);
  }

  /** Does not release: the lease ends by itself. */
  async forget(): Promise<void> {
    this.#held = undefined;
  }

  async hold(): Promise<void> {
    await sleep(between({ from: 0, to: TTL_MS.to / 12 }));
  }

  async holdTooLong(): Promise<void> {
    await sleep(TTL_MS.to);
  }

  readonly #whenFree = [this.tryAcquire, this.tryAcquire, this.tryAcquire, this.acquire, this.acquire, this.abort];
  readonly #whenHeld = [
    ...[this.release, this.release, this.release, this.extend, this.extend, this.promote, this.demote],
    ...[this.isHeld, this.handOver, this.hold, this.hold, this.forget, this.holdTooLong],
    ...(request.favours === "handOver" ? [...TEN.map(() => this.handOver), ...TEN.map(() => this.hold)] : []),
  ];

  #tested(): LockStore {
    const { broken } = request;
    return broken === undefined ? this.#store : BROKEN_STORES[broken](this.#store, client);
  }

  #lock() {
    return this.#locks.createLock(`short:${between({ from: 1, to: request.keys })}`, { ttlMs: between(TTL_MS) });
  }

  #hold(lease: Lease, id = newLeaseId()): void {
    this.#held = { id, lease };
    this.#write({});
  }

  async #change(ttlMs: number, ask: (lease: Lease) => Promise<unknown>, mode?: "shared"): Promise<void> {
    const { lease } = this.#held as Held;
    // A shorter end counts from now on, whatever becomes of the request.
    this.#write({ until: monotonicNow() + ttlMs, mode });
    try {
      await ask(lease);
    } finally {
      this.#write({});
    }
  }

  #write({ mode, until = Number.POSITIVE_INFINITY }: { mode?: "shared" | undefined; until?: number }): void {
    const { id, lease } = this.#held as Held;
    const at = monotonicNow(); // First: what follows is then never later than it says.
    const believed = { at, until: Math.min(until, at + lease.remainingMs()), mode: mode ?? lease.mode };
    write({ lease: id, key: lease.key, ...believed, token: String(lease.fencingToken) });
  }
}

function newLeaseId(): string {
  leases += 1;
  return `${request.name}#${leases}`;
}

function count(name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

process.on("unhandledRejection", (error) => write({ complaint: `unhandled rejection: ${String(error)}` }));
await Promise.all(
  Array.from({ length: request.actors }, async () => {
    const actor = new Actor();
    while (begun < request.operations) await actor.step();
    await actor.end();
  }),
);
write({ done: begun, counts });
// A grant that nobody waits for any more is given back in the background.
for (let round = 0; round < 3; round++) {
  await client.ping();
  await sleep(20);
}
await client.quit();
