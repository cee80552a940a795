import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { ClientAddressOf } from "./client-address.ts";
import type { HttpProblem, ProblemCode } from "./problems.ts";
import { requestIdOf } from "./request-id.ts";
import type { ServedRoute } from "./route.ts";

/** What an {@link Exchange} needs of the service. */
export interface ExchangeOptions {
  readonly logger: Logger;
  readonly clientAddressOf: ClientAddressOf;
  /** @default nobody looks on */
  readonly observe?: RequestObserver | undefined;
}

/** A request that is over, for metrics. */
export interface EndedRequest {
  /** `undefined`: no route takes it. */
  readonly route: Pick<ServedRoute, "method" | "path"> | undefined;
  /** `undefined`: the client went away before its answer. */
  readonly status: number | undefined;
  readonly durationMs: number;
  /** What it was answered with, where that was a problem. */
  readonly problem: ProblemCode | undefined;
}

/** Receives each request when it is over. It is called synchronously, must be quick, and must not throw. */
export type RequestObserver = (ended: EndedRequest) => void;

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
  #route: ServedRoute | undefined;
  #problem: ProblemCode | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, options: ExchangeOptions) {
    this.request = request;
    this.response = response;
    this.requestId = requestIdOf(request);
    this.#options = options;
    // Emitted once, whether the answer was sent or the client went away.
    response.once("close", () => this.#end());
  }

  /** Carries the request's id. Made when it is first used: most requests log nothing of their own. */
  get log(): Logger {
    this.#log ??= this.#options.logger.child({ requestId: this.requestId });
    return this.#log;
  }

  /** The route that serves the request. */
  serving(route: ServedRoute): void {
    this.#route = route;
    if (route.quiet) this.keepQuiet();
  }

  /** What the request is answered with, where that is a problem. */
  get problem(): ProblemCode | undefined {
    return this.#problem;
  }

  /** Says that the request is answered with a problem. */
  failing(problem: HttpProblem): void {
    this.#problem = problem.code;
    this.note(factsOf(problem));
  }

  /** Adds facts to the request's own log line; never a secret. */
  note(facts: Readonly<Record<string, unknown>>): void {
    this.#facts = this.#facts === undefined ? { ...facts } : Object.assign(this.#facts, facts);
  }

  /** Writes the request's line at debug level, for what is asked every few seconds by machines that watch. */
  keepQuiet(): void {
    this.#quiet = true;
  }

  #end(): void {
    const { response } = this;
    // A client that went away before its answer has been given none.
    const status = response.headersSent ? response.statusCode : undefined;
    const durationMs = performance.now() - this.#startedAtMs;
    this.#options.observe?.({ route: this.#route, status, durationMs, problem: this.#problem });
    this.#writeLine({ status, durationMs });
  }

  #writeLine({ status, durationMs }: Pick<EndedRequest, "status" | "durationMs">): void {
    const { request, response } = this;
    const { writableFinished: finished } = response;
    this.#options.logger[this.#quiet ? "debug" : status !== undefined && status >= 500 ? "warn" : "info"](
      {
        requestId: this.requestId,
        method: request.method,
        // Without the query: it may carry a signature that lets its bearer in.
        path: pathOf(request.url ?? "", 200),
        status,
        durationMs: Math.round(durationMs * 10) / 10,
        client: this.#options.clientAddressOf(request),
        ...(finished ? undefined : { cut: true }),
        ...this.#facts,
      },
      "request",
    );
  }
}

/** The facts of a problem for the request's line. */
function factsOf(problem: HttpProblem): Readonly<Record<string, unknown>> {
  const { code, cause } = problem;
  return cause === undefined ? { code } : { code, err: cause };
}

function pathOf(url: string, maxLength: number): string {
  const end = url.indexOf("?");
  return url.slice(0, Math.min(end === -1 ? url.length : end, maxLength));
}
