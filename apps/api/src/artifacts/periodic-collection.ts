import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type CollectOptions, collectGarbage } from "./collect-garbage.ts";

/** The collection that a running service makes by itself. */
export interface PeriodicCollection {
  /** Ends it; a collection in progress ends with the file that it is at. */
  stop(): Promise<void>;
}

/**
 * Collects garbage every `intervalMs`, in every process of an installation: they do not disturb each other. The first time
 * is at a random moment of the interval, so that processes that start together do not all read the folder at once.
 */
export function startPeriodicCollection(
  options: Omit<CollectOptions, "signal" | "dryRun"> & { readonly intervalMs: number; readonly logger: Logger },
): PeriodicCollection {
  const { intervalMs, logger, ...collection } = options;
  const ending = new AbortController();
  const { signal } = ending;
  const running = (async () => {
    let waitMs = Math.random() * intervalMs;
    while (await slept(waitMs, signal)) {
      waitMs = intervalMs;
      try {
        const collected = await collectGarbage({ ...collection, signal });
        if (collected.deleted + collected.abandonedUploads > 0) logger.info(collected, "unused artifacts were deleted");
      } catch (error) {
        // The next round tries again; nothing depends on this one.
        logger.warn({ err: error }, "unused artifacts could not be deleted");
      }
    }
  })();
  return {
    async stop() {
      ending.abort();
      await running;
    },
  };
}

/** `false`: it was ended instead. */
async function slept(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    // What else keeps the process alive decides when it ends.
    await sleep(ms, undefined, { signal, ref: false });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
