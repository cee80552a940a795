import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { ClientAddressOf } from "./client-address.ts";
import type { HttpProblem } from "./problems.ts";
import { requestIdOf } from "./request-id.ts";

/** What an {@link Exchange} needs of the service. */
export interface ExchangeOptions {
  readonly logger: Logger;
  readonly clientAddressOf: ClientAddressOf;
}

/** One request with its answer: its id, its clock and its line in the log. */
export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly #options: ExchangeOptions;
  readonly #startedAtMs = performance.now();
  #log: Logger | undefined;
  #facts: Record<string, unknown> | undefined;
  #quiet = false;

  constructor(request: IncomingMessage, response: ServerResponse, options: ExchangeOptions) {
    this.request = request;
    this.response = response;
    this.requestId = requestIdOf(request);
    this.#options = options;
    // Emitted once, whether the answer was sent or the client went away.
    response.once("close", () => this.#writeLine());
  }

  /** Carries the request's id. Made when it is first used: most requests log nothing of their own. */
  get log(): Logger {
    this.#log ??= this.#options.logger.child({ requestId: this.requestId });
    return this.#log;
  }

  /** Adds facts to the request's own log line; never a secret. */
  note(facts: Readonly<Record<string, unknown>>): void {
    this.#facts = this.#facts === undefined ? { ...facts } : Object.assign(this.#facts, facts);
  }

  /** Writes the request's line at debug level, for what is asked every few seconds by machines that watch. */
  keepQuiet(): void {
    this.#quiet = true;
  }

  #writeLine(): void {
    const { request, response } = this;
    const { writableFinished: finished } = response;
    // A client that went away before its answer has been given none.
    const status = response.headersSent ? response.statusCode : undefined;
    this.#options.logger[this.#quiet ? "debug" : status !== undefined && status >= 500 ? "warn" : "info"](
      {
        requestId: this.requestId,
        method: request.method,
        // Without the query: it may carry a signature that lets its bearer in.
        path: pathOf(request.url ?? "", 200),
        status,
        durationMs: Math.round((performance.now() - this.#startedAtMs) * 10) / 10,
        client: this.#options.clientAddressOf(request),
        ...(finished ? undefined : { cut: true }),
        ...this.#facts,
      },
      "request",
    );
  }
}

/** The facts of a problem for the request's line. */
export function problemFacts(problem: HttpProblem): Readonly<Record<string, unknown>> {
  const { code, cause } = problem;
  return cause === undefined ? { code } : { code, err: cause };
}

function pathOf(url: string, maxLength: number): string {
  const end = url.indexOf("?");
  return url.slice(0, Math.min(end === -1 ? url.length : end, maxLength));
}
