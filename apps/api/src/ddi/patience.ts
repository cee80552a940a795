import { setTimeout as sleep } from "node:timers/promises";
import { ServiceBusyError } from "@ota/domain";
import { problemOf } from "../http/problem-of.ts";

/** As long as a client can be expected to wait for an answer. */
const PATIENCE_MS = 5_000;

/**
 * Does what a device tells until it is done: while the service is busy or its database is away it is tried again, since
 * some clients never repeat what was refused. Work that is tried again must be safe to repeat.
 *
 * @throws ServiceBusyError once the patience is over; what was begun may still be done then.
 */
export async function withPatience<T>(work: () => Promise<T>): Promise<T> {
  const over = new AbortController();
  const timeout = sleep(PATIENCE_MS, undefined, { signal: over.signal }).then(
    () => {
      throw new ServiceBusyError("The service is busy. Send it again.", { retryAfterSeconds: 1 });
    },
    () => new Promise<never>(() => {}),
  );
  try {
    return await Promise.race([repeated(work, over.signal), timeout]);
  } finally {
    over.abort();
  }
}

async function repeated<T>(work: () => Promise<T>, over: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const { code } = problemOf(error);
      if (over.aborted || (code !== "SERVICE_BUSY" && code !== "DATABASE_UNAVAILABLE")) throw error;
    }
    await sleep(100 + Math.random() * 300);
  }
}
