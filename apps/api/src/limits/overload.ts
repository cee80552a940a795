import type { Logger } from "pino";
import type { LimitObserver, OverloadCause } from "./events.ts";
import { StandingDelay } from "./standing-delay.ts";

/** The database as {@link createOverload} sees it. */
export interface DatabaseDelay {
  /**
   * The least time that a statement has taken since the last call; while none is answered and more are on their way than
   * there are connections, how long the oldest has waited. `undefined`: nothing is known.
   */
  takeDelayMs(): number | undefined;
  /** Sends a statement, so that something is known. */
  probe(): Promise<void>;
}

/** What {@link createOverload} goes by. */
export interface OverloadOptions {
  /** How late the event loop may be; 0: never mind. */
  readonly loopLimitMs: number;
  /** How long statements may take; 0: never mind. */
  readonly databaseLimitMs: number;
  /** `undefined`: the database lives in this process, and shows in its event loop. */
  readonly database: DatabaseDelay | undefined;
  readonly logger: Logger;
  readonly observe: LimitObserver;
  /** @default 1000 */
  readonly enterMs?: number;
  /** @default 1000 */
  readonly leaveMs?: number;
}

/** Knows whether the process has more to do than it can. */
export interface Overload {
  /** What is late; `undefined`: nothing. */
  readonly cause: OverloadCause | undefined;
  /** Counts a check that was turned away for it. */
  turnedAway(cause: OverloadCause): void;
  stop(): void;
}

const SAMPLE_MS = 100;

/** How often the database is asked while checks, which would show how it is, are turned away. */
const PROBE_MS = 500;

/** Looks ten times a second, until it is stopped. Each overload is two lines in the log, however long it lasts. */
export function createOverload(options: OverloadOptions): Overload {
  const { database, loopLimitMs, databaseLimitMs, logger, observe } = options;
  const { enterMs = 1000, leaveMs = 1000 } = options;
  const loop = new StandingDelay({ limitMs: loopLimitMs || Number.POSITIVE_INFINITY, enterMs, leaveMs });
  const statements = new StandingDelay({ limitMs: databaseLimitMs || Number.POSITIVE_INFINITY, enterMs, leaveMs });
  let cause: OverloadCause | undefined;
  let episode = { turnedAway: 0, sinceMs: 0 };
  let lastMs = performance.now();
  let probedMs = 0;
  let probing = false;

  const timer = setInterval(() => {
    const nowMs = performance.now();
    const lateMs = nowMs - lastMs - SAMPLE_MS;
    lastMs = nowMs;
    const databaseMs = database?.takeDelayMs();
    loop.sample(lateMs, nowMs);
    statements.sample(databaseMs, nowMs);
    if (statements.stands && nowMs - probedMs >= PROBE_MS) probe(nowMs);
    // A loop that is late makes every statement look late.
    const found = loop.stands ? "event-loop" : statements.stands ? "database" : undefined;
    if (found !== cause) changed(found, { nowMs, delayMs: found === "database" ? databaseMs : lateMs });
  }, SAMPLE_MS).unref();

  function probe(nowMs: number): void {
    if (database === undefined || probing) return;
    probing = true;
    probedMs = nowMs;
    const done = (): void => {
      probing = false;
    };
    // How it went shows in the delay.
    database.probe().then(done, done);
  }

  function changed(to: OverloadCause | undefined, seen: { nowMs: number; delayMs: number | undefined }): void {
    const { nowMs, delayMs } = seen;
    if (cause !== undefined) observe({ kind: "overload", cause, active: false });
    if (to !== undefined) observe({ kind: "overload", cause: to, active: true });
    if (cause === undefined) episode = { turnedAway: 0, sinceMs: nowMs };
    if (to === undefined) {
      const lastedMs = Math.round(nowMs - episode.sinceMs);
      logger.info({ cause, lastedMs, turnedAway: episode.turnedAway }, "checks are answered again");
    } else {
      logger.warn({ cause: to, delayMs: Math.round(delayMs ?? 0) }, "overloaded: checks are turned away");
    }
    cause = to;
  }

  return {
    get cause() {
      return cause;
    },
    turnedAway(of) {
      episode.turnedAway += 1;
      observe({ kind: "shed", cause: of });
    },
    stop: () => clearInterval(timer),
  };
}
