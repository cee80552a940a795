import type { CheckObserver } from "@ota/domain";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { RequestObserver } from "../http/exchange.ts";
import type { PoolLoad } from "../statement-flow.ts";
import { checkMetrics } from "./check-metrics.ts";
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
  /** Ends what looks on elsewhere in the process. */
  close(): void;
}

/** What {@link createMetrics} looks at. */
export interface MetricsOptions {
  /** The database's connections; absent: it has none. */
  readonly poolLoad?: (() => PoolLoad) | undefined;
}

/** Makes the figures, all at zero. Locks are counted for the whole process, whoever takes them. */
export function createMetrics({ poolLoad }: MetricsOptions): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const stopLocks = lockMetrics(registry);
  if (poolLoad !== undefined) poolMetrics(registry, poolLoad);
  return {
    registry,
    observeCheck: checkMetrics(registry),
    observeRequest: requestMetrics(registry),
    close: stopLocks,
  };
}
