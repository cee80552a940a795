import type { Logger } from "@ota/lock-core";
import { sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { devices } from "../schema/index.ts";

/** Rows of one statement: their locks are held only briefly, and checks that create wait for them. */
const BATCH = 1_000;

/**
 * When each device was seen last, gathered in memory and written in batches: a check itself writes nothing for it.
 * What a process has not written yet is lost when it is killed; nothing depends on it.
 */
export class LastSeen {
  readonly #db: Database;
  readonly #logger: Logger;
  readonly #flushMs: number;
  /** In milliseconds since the epoch: of a big fleet, dates would be most of what the process keeps. */
  #seen = new Map<bigint, number>();
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor(options: { readonly db: Database; readonly logger: Logger; readonly flushMs: number }) {
    this.#db = options.db;
    this.#logger = options.logger;
    this.#flushMs = options.flushMs;
  }

  /** Notes that a device was seen; it is written within `flushMs`. */
  touch(deviceId: bigint, at: Date): void {
    this.#note(deviceId, at.getTime());
  }

  #note(deviceId: bigint, atMs: number): void {
    this.#seen.set(deviceId, atMs);
    // Only while there is something to write, and never keeping the process alive.
    this.#timer ??= setTimeout(() => void this.flush(), this.#flushMs).unref();
  }

  /** Forgets a device whose row was written with the time by somebody else. */
  written(deviceId: bigint): void {
    this.#seen.delete(deviceId);
  }

  /** Writes what was noted so far. A fault is logged, and what it concerns is tried again with the next flush. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  async #write(): Promise<void> {
    const entries = [...this.#seen];
    this.#seen = new Map();
    for (let start = 0; start < entries.length; start += BATCH) {
      const batch = entries.slice(start, start + BATCH);
      try {
        await writeLastSeen(this.#db, batch);
      } catch (err) {
        this.#logger.warn({ err, devices: batch.length }, "Last-seen times could not be written; trying again.");
        for (const [deviceId, atMs] of batch) if (!this.#seen.has(deviceId)) this.#note(deviceId, atMs);
      }
    }
  }
}

/**
 * One statement for the batch. Its rows are locked in the order of their ids, so that the flushes of several processes
 * cannot wait for each other in a circle. A time that is older than the row's, from a slower process, changes nothing.
 */
async function writeLastSeen(db: Database, batch: readonly (readonly [bigint, number])[]): Promise<void> {
  const ids = `{${batch.map(([id]) => id).join(",")}}`;
  const times = `{${batch.map(([, atMs]) => new Date(atMs).toISOString()).join(",")}}`;
  const seen = db.$with("seen", { id: devices.id }).as(sql`
    select devices.id, given.at
    from unnest(${ids}::bigint[], ${times}::timestamptz[]) as given(id, at) join devices on devices.id = given.id
    order by devices.id
    for update of devices
  `);
  const written = db.$with("written", { id: devices.id }).as(sql`
    update devices set last_seen_at = greatest(last_seen_at, seen.at) from seen where devices.id = seen.id
    returning devices.id
  `);
  await db.with(seen, written).select({ rows: sql`count(*)` }).from(written);
}
