import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { LimitConfig } from "../config.ts";
import type { OpenDatabase } from "../database.ts";
import { clientAddresses } from "../http/client-address.ts";
import { trustOf } from "../http/trusted-proxies.ts";
import type { LimitObserver } from "./events.ts";
import { FailedAuthentication } from "./failed-authentication.ts";
import { createGate, type Gate } from "./gate.ts";
import { createOverload, type Overload } from "./overload.ts";
import { RateLimit } from "./rate-limit.ts";
import { redisCounts } from "./shared-counts.ts";

/** The limits of the service. */
export interface Limits {
  readonly gate: Gate;
  readonly overload: Overload;
}

/** What {@link openLimits} needs. */
export interface OpenLimitsOptions {
  readonly config: LimitConfig;
  readonly trustedProxies: readonly string[];
  readonly database: OpenDatabase;
  /** Where processes share their counts; `undefined`: each counts for itself. */
  readonly redis: Redis | undefined;
  /** Put before every key in Redis. */
  readonly keyPrefix: string;
  readonly logger: Logger;
  readonly observe: LimitObserver;
}

/** Makes the limits of the configuration. The overload looks until it is stopped. */
export function openLimits(options: OpenLimitsOptions): Limits {
  const { config, trustedProxies, database, redis, keyPrefix, logger, observe } = options;
  const { pool } = database;
  const overload = createOverload({
    loopLimitMs: config.loopDelayMs,
    databaseLimitMs: config.databaseDelayMs,
    database: pool === undefined ? undefined : { takeDelayMs: () => pool.takeDelayMs(), probe: () => database.probe() },
    logger,
    observe,
  });
  const shared = redis === undefined ? undefined : redisCounts(redis, keyPrefix);
  const { checksPerMinute, failuresPerMinute, spreadSeconds } = config;
  const clientAddressOf = clientAddresses(trustedProxies);
  const isProxy = trustOf(trustedProxies);
  const gate = createGate({
    overload,
    checks:
      checksPerMinute === 0 ? undefined : new RateLimit({ name: "check", limit: checksPerMinute, shared, observe }),
    failures:
      failuresPerMinute === 0 ? undefined : new FailedAuthentication({ limit: failuresPerMinute, shared, observe }),
    addressOf(request) {
      const address = clientAddressOf(request);
      return address === undefined || isProxy(address) ? undefined : address;
    },
    spreadSeconds,
    observe,
  });
  return { gate, overload };
}
