import type { RequestListener, Server } from "node:http";
import {
  assignDeadlines,
  type BackgroundJob,
  createSweeper,
  createUpdateChecks,
  deleteOldAudit,
  deleteOldEvents,
  foldFigures,
  hashToken,
  hasStoredArtifacts,
  installationId,
  settleRollouts,
  timeOutAttempts,
} from "@ota/domain";
import type { Logger } from "pino";
import { createListener } from "./app.ts";
import { createArtifactUrls } from "./artifacts/artifact-urls.ts";
import { DiskArtifactStore } from "./artifacts/disk-artifact-store.ts";
import { startPeriodicCollection } from "./artifacts/periodic-collection.ts";
import type { Config } from "./config.ts";
import type { OpenDatabase } from "./database.ts";
import { createHealth } from "./health.ts";
import { publicUrls } from "./http/public-url.ts";
import { createHttpServer } from "./http/server.ts";
import type { ServiceKeys } from "./keys.ts";
import { openLimits } from "./limits/open-limits.ts";
import { listen } from "./listen.ts";
import { openLocks } from "./locks.ts";
import { createMetrics, type Metrics } from "./metrics/metrics.ts";
import type { MetricsPage } from "./metrics/metrics-page.ts";
import { drainServer, runShutdown, type ShutdownStep, serveOn } from "./shutdown.ts";
import { tracedChecks } from "./tracing/check-spans.ts";
import type { Tracing } from "./tracing/tracing.ts";
import { serviceVersion } from "./version.ts";

/** The service while it runs. */
export interface RunningService {
  /** Where clients reach it, without a trailing slash. */
  readonly url: string;
  /**
   * Says so at `/readyz` and serves on for the configuration's delay, then stops accepting, lets requests in flight finish
   * within the configuration's limit, writes what is in memory only, and closes everything that {@link startService} has
   * opened. The database belongs to the caller.
   */
  stop(): Promise<"clean" | "with-errors">;
}

/** What {@link startService} starts from. */
export interface StartOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly database: OpenDatabase;
  readonly keys: ServiceKeys;
  /**
   * Traces what the service does; its end is the caller's.
   * @default nothing is traced
   */
  readonly tracing?: Tracing | undefined;
}

/** How soon after an outcome a rollout is paused by its threshold; it gives no place meanwhile, however long that is. */
const SETTLE_INTERVAL_MS = 2_000;

/** Starts the service on an open database; resolves when it listens. Nothing stays open when it cannot start. */
export async function startService(options: StartOptions): Promise<RunningService> {
  // The last opened is the first closed.
  const steps: ShutdownStep[] = [];
  try {
    const url = await start(options, (step) => steps.unshift(step));
    return { url, stop: () => runShutdown(steps, options.logger) };
  } catch (error) {
    await runShutdown(steps, options.logger);
    throw error;
  }
}

async function start(options: StartOptions, onStop: (step: ShutdownStep) => void): Promise<string> {
  const { config, logger, database, keys, tracing } = options;
  const artifacts = await DiskArtifactStore.open({
    directory: config.artifacts.directory,
    installationId: await installationId(database.db),
    expectsArtifacts: await hasStoredArtifacts(database.db),
  });

  const locks = await openLocks({ ...config.locks, logger });
  onStop({ name: "close the lock store", run: () => locks.close() });
  const metrics = config.metrics.enabled ? createMetrics({ pool: database.pool }) : undefined;
  if (metrics !== undefined) onStop({ name: "end the metrics", run: () => metrics.close() });
  const checks = createUpdateChecks({
    db: database.db,
    locks: locks.factory,
    logger,
    observer: metrics?.observeCheck,
    settings: checkSettings(config),
  });
  onStop({ name: "write last-seen times", run: () => checks.close() });
  const { sweepIntervalMs: intervalMs } = config;
  const sweeper = createSweeper({
    db: database.db,
    locks: locks.factory,
    fencing: locks.fencing,
    logger,
    jobs: [
      timeOutAttempts({ intervalMs, observe: metrics?.observeCheck }),
      assignDeadlines({ intervalMs }),
      foldFigures({ intervalMs }),
      ...retentionJobs(config),
      settleRollouts({ intervalMs: Math.min(intervalMs, SETTLE_INTERVAL_MS) }),
    ],
    settings: {
      lockKeyPrefix: config.locks.keyPrefix,
      lockTtlMs: config.locks.ttlMs,
      lockOutage: config.locks.outage,
    },
  });
  onStop({ name: "end the background jobs", run: () => sweeper.stop() });
  sweeper.start();

  const { collectIntervalMs, collectAgeMs } = config.artifacts;
  if (collectIntervalMs > 0) {
    const collection = startPeriodicCollection({
      ...{ db: database.db, store: artifacts, logger },
      ...{ intervalMs: collectIntervalMs, minAgeMs: collectAgeMs },
    });
    onStop({ name: "end the collection of unused artifacts", run: () => collection.stop() });
  }

  const { trustedProxies } = config.http;
  const { gate, overload } = openLimits({
    config: config.limits,
    trustedProxies,
    database,
    redis: locks.redis,
    keyPrefix: config.locks.keyPrefix,
    logger,
    observe: metrics?.observeLimits ?? (() => {}),
  });
  onStop({ name: "end the look-out for overload", run: () => overload.stop() });

  // The application needs the address, which is known when the server listens; no request is read before this is through.
  let app: RequestListener | undefined;
  const server = createHttpServer((request, response) => app?.(request, response), config.http);
  const address = await listen(server, config.http);
  onStop({ name: "drain the server", run: () => drain(server, options) });
  const publicUrl = config.http.publicUrl ?? address;
  let ending = false;
  app = createListener({
    services: {
      db: database.db,
      checks: tracing === undefined ? checks : tracedChecks(checks, tracing.tracer),
      observeMove: metrics?.observeCheck,
      artifacts,
      artifactUrls: createArtifactUrls({
        key: keys.urlSigningKey,
        acceptedKeys: config.urlAcceptedKeys,
        validSeconds: config.urlValidSeconds,
      }),
      health: createHealth({
        probeDatabase: () => database.probe(),
        probeLockStore: () => locks.probe(),
        lockOutage: config.locks.outage,
        probeArtifacts: () => artifacts.probe(),
        isOverloaded: () => overload.cause !== undefined,
        isEnding: () => ending,
      }),
      metrics: metrics === undefined ? undefined : metricsPage(metrics, config),
      maxArtifactBytes: config.artifacts.maxSizeBytes,
      publicUrlOf: publicUrls({ configured: config.http.publicUrl, address, trustedProxies }),
    },
    logger,
    version: serviceVersion,
    bodyLimitBytes: config.http.bodyLimitBytes,
    bodyTimeoutMs: config.http.bodyTimeoutMs,
    sendsOnlyByTls: publicUrl.startsWith("https:"),
    trustedProxies,
    ddiAuthorities: config.ddiAuthorities,
    observeRequest: metrics?.observeRequest,
    gate,
    traceRequest: tracing?.traceRequest,
  });
  onStop({
    name: "serve on until balancers have seen the end",
    run() {
      ending = true;
      return serveOn(server, { delayMs: config.shutdownDelayMs });
    },
  });
  logger.info({ address, publicUrl, database: database.kind, locks: locks.kind, version: serviceVersion }, "listening");
  return publicUrl;
}

/** Often enough that a day's worth is never deleted at once. */
const RETENTION_INTERVAL_MS = 3_600_000;

function retentionJobs({ retention: { eventDays, auditDays } }: Config): readonly BackgroundJob[] {
  const intervalMs = RETENTION_INTERVAL_MS;
  return [
    ...(eventDays === undefined ? [] : [deleteOldEvents({ intervalMs, afterDays: eventDays })]),
    ...(auditDays === undefined ? [] : [deleteOldAudit({ intervalMs, afterDays: auditDays })]),
  ];
}

function checkSettings({ locks, lastSeenFlushMs }: Config) {
  return {
    lockKeyPrefix: locks.keyPrefix,
    lockTtlMs: locks.ttlMs,
    lockMaxAttempts: locks.maxAttempts,
    lockRetryIntervalMs: locks.retryIntervalMs,
    lockOutage: locks.outage,
    lockBreakerMs: locks.breakerMs,
    lastSeenFlushMs,
  };
}

function metricsPage({ registry }: Metrics, { metrics: { token } }: Config): MetricsPage {
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    tokenHash: token === undefined ? undefined : hashToken(token),
  };
}

async function drain(server: Server, { config, logger }: StartOptions): Promise<void> {
  const outcome = await drainServer(server, { timeoutMs: config.shutdownTimeoutMs });
  if (outcome === "cut") {
    logger.warn(
      { timeoutMs: config.shutdownTimeoutMs },
      "requests were still in flight at the end of the shutdown and were cut",
    );
  }
}
