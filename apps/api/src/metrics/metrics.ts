import type { CheckObserver } from "@ota/domain";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { DatabasePool } from "../database.ts";
import type { RequestObserver } from "../http/exchange.ts";
import type { LimitObserver } from "../limits/events.ts";
import { checkMetrics } from "./check-metrics.ts";
import { limitMetrics } from "./limit-metrics.ts";
import { lockMetrics } from "./lock-metrics.ts";
import { poolMetrics } from "./pool-metrics.ts";
import { requestMetrics } from "./request-metrics.ts";

/**
 * The figures of this process, in Prometheus' terms. No label holds anything that a fleet has many of: no device, serial,
 * id, address or path, only words that the source knows.
 */
export interface Metrics {
  readonly registry: Registry;
  readonly observeCheck: CheckObserver;
  readonly observeRequest: RequestObserver;
  readonly observeLimits: LimitObserver;
  /** Ends what looks on elsewhere in the process. */
  close(): void;
}

/** What {@link createMetrics} looks at. */
export interface MetricsOptions {
  /** The database's connections; absent: it has none. */
  readonly pool?: DatabasePool | undefined;
}

/** Makes the figures, all at zero. Locks are counted for the whole process, whoever takes them. */
export function createMetrics({ pool }: MetricsOptions): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const stopLocks = lockMetrics(registry);
  if (pool !== undefined) poolMetrics(registry, pool);
  return {
    registry,
    observeCheck: checkMetrics(registry),
    observeRequest: requestMetrics(registry),
    observeLimits: limitMetrics(registry),
    close: stopLocks,
  };
}
