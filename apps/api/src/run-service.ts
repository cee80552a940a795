import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { listProducts } from "@ota/domain";
import type { Logger } from "pino";
import type { Config } from "./config.ts";
import { openDataFolder } from "./data-folder.ts";
import { type OpenDatabase, openDatabase } from "./database.ts";
import { databaseFault } from "./database-errors.ts";
import { greeting } from "./greeting.ts";
import { prepareKeys } from "./keys.ts";
import { probeAddress } from "./listen.ts";
import { startService } from "./service.ts";
import { startTracing, type Tracing } from "./tracing/tracing.ts";

/** Runs the service until a signal ends it. Returns the exit code. Rejects where it cannot start. */
export async function runService(config: Config, logger: Logger): Promise<number> {
  const ending = endingSignals(logger);
  for (const { name, meant } of config.unknownVariables)
    logger.warn(
      { name, meant },
      "this environment variable is not known to the service and has no effect: docs/configuration.md has all",
    );

  const tracing = config.tracing.enabled ? await startTracing({ ...config.tracing, logger }) : undefined;
  const folder = config.database.kind === "embedded" ? await openDataFolder(config.dataDirectory) : undefined;
  try {
    if (config.migrate !== "only") await probeAddress(config.http);
    if (config.database.kind === "embedded" && !existsSync(config.database.directory)) {
      process.stderr.write(`Making a new database in ${config.database.directory}; this takes a few seconds.\n`);
    }
    const database = await openWhenReachable(config, { logger, signal: ending.signal, tracing });
    try {
      if (config.migrate === "only") {
        logger.info("the schema is up to date");
        return 0;
      }
      const keys = await prepareKeys(database, { config, folder });
      const service = await startService({ config, logger, database, keys, tracing });
      if (folder !== undefined) {
        const { items } = await listProducts(database.db, { limit: 1 });
        process.stderr.write(
          greeting({ url: service.url, keys, empty: items.length === 0, terminal: process.stderr.isTTY }),
        );
      }
      warnOfSeveralProcesses(config, logger);
      await ending.requested;
      return (await service.stop()) === "clean" ? 0 : 1;
    } finally {
      await database.close();
    }
  } finally {
    folder?.close();
    await tracing?.stop();
    logger.info("ended");
  }
}

/** How long a database that is away is waited for at the start: it may be starting at the same time. */
const START_PATIENCE_MS = 30_000;
const START_RETRY_MS = 500;

async function openWhenReachable(
  config: Config,
  options: { readonly logger: Logger; readonly signal: AbortSignal; readonly tracing: Tracing | undefined },
): Promise<OpenDatabase> {
  const { logger, signal, tracing } = options;
  const deadlineMs = performance.now() + START_PATIENCE_MS;
  for (let warned = false; ; warned = true) {
    try {
      return await openDatabase(config, { observeStatement: tracing?.traceStatement });
    } catch (error) {
      if (databaseFault(error) !== "unavailable" || performance.now() > deadlineMs) throw error;
      if (!warned) logger.warn({ err: error }, "the database is not reachable yet");
      await sleep(START_RETRY_MS, undefined, { signal });
    }
  }
}

interface Ending {
  /** Resolves at the first signal. */
  readonly requested: Promise<unknown>;
  readonly signal: AbortSignal;
}

/** The first SIGTERM or SIGINT asks for the end, the second one is the end. */
function endingSignals(logger: Logger): Ending {
  const controller = new AbortController();
  const { promise: requested, resolve } = Promise.withResolvers<void>();
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(name === "SIGINT" ? 130 : 143);
    logger.info({ signal: name }, "ending: requests in flight may finish");
    controller.abort(new Error(`Ended by ${name} before it had started.`));
    resolve();
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  return { requested, signal: controller.signal };
}

function warnOfSeveralProcesses({ database, locks }: Config, logger: Logger): void {
  if (database.kind === "postgres" && locks.redisUrl === undefined) {
    logger.warn(
      "without REDIS_URL checks are serialised within this process only; several processes will contend in the database",
    );
  }
}
