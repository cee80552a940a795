import { once } from "node:events";
import type { Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

/** What {@link drainServer} may take. */
export interface DrainOptions {
  /** After this, connections that are still busy are cut. */
  readonly timeoutMs: number;
}

/** How often connections are looked through that have become idle while the server drains. */
const IDLE_SWEEP_MS = 50;

/**
 * Stops accepting connections and lets the requests in flight finish. Resolves `drained` when the last connection has
 * ended, or `cut` when the rest had to be cut.
 */
export async function drainServer(server: Server, { timeoutMs }: DrainOptions): Promise<"drained" | "cut"> {
  makeAnswersTheLast(server);
  const closed = once(server, "close");
  server.close();
  const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(() => resolve("late"), timeoutMs);
  const outcome = await Promise.race([closed, late]);
  if (outcome === "late") server.closeAllConnections();
  clearInterval(sweep);
  clearTimeout(timer);
  await closed;
  return outcome === "late" ? "cut" : "drained";
}

/**
 * Goes on accepting and answering for a while, so that whoever sends requests here by `/readyz` has time to see that it is
 * ending. With the connections that end by their next answer, what comes after the drain has begun is next to nothing.
 */
export async function serveOn(server: Server, { delayMs }: { readonly delayMs: number }): Promise<void> {
  if (delayMs === 0) return;
  makeAnswersTheLast(server);
  await sleep(delayMs);
}

/** A client that keeps its connection is told with the next answer that this was the last one. */
function makeAnswersTheLast(server: Server): void {
  server.prependListener("request", (_request, response) => {
    response.shouldKeepAlive = false;
  });
}

/** One step of a shutdown. */
export interface ShutdownStep {
  readonly name: string;
  readonly run: () => unknown;
}

/** Runs the steps in their order. A step that fails is logged and does not keep the others from running. */
export async function runShutdown(steps: readonly ShutdownStep[], logger: Logger): Promise<"clean" | "with-errors"> {
  let outcome: "clean" | "with-errors" = "clean";
  for (const { name, run } of steps) {
    try {
      await run();
    } catch (error) {
      outcome = "with-errors";
      logger.error({ err: error, step: name }, "a step of the shutdown failed");
    }
  }
  return outcome;
}
