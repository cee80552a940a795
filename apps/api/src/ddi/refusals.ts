import { OtaError } from "@ota/domain";
import type { Exchange } from "../http/exchange.ts";
import { type HttpProblem, PROBLEMS, type ProblemCode } from "../http/problems.ts";
import { type FlatHeaders, sendJson } from "../http/send.ts";
import { problemToAnswer } from "../http/serve-route.ts";

/** A refusal that DDI alone knows. */
export class DdiRefusal extends Error {
  readonly status: 404 | 406 | 409 | 412 | 429;
  /** As hawkBit's clients know it. */
  readonly errorCode: string;

  constructor(refusal: Pick<DdiRefusal, "status" | "errorCode" | "message">) {
    super(refusal.message);
    this.name = "DdiRefusal";
    this.status = refusal.status;
    this.errorCode = refusal.errorCode;
  }
}

/** There is no such thing for this device, or it is not in the state that the resource is for. */
export function noSuchAction(message: string): OtaError {
  return new OtaError("NOT_FOUND", message);
}

/** Statuses that are not those of the native API. Whoever is told 413 or 422 for a report would drop it all the same. */
const STATUSES: Partial<Record<ProblemCode, number>> = {
  GATEWAY_TOKEN_REFUSED: 401,
  ATTEMPT_CLOSED: 410,
  INVALID_FIELD: 400,
  FIELDS_INVALID: 400,
  BODY_TOO_LARGE: 400,
  REQUEST_TIMEOUT: 400,
  // "Come again": a 503 makes some clients drop what they were about to report.
  SERVICE_BUSY: 429,
};

const ERROR_CODES: Partial<Record<ProblemCode, string>> = {
  NOT_FOUND: "hawkbit.server.error.repo.entityNotFound",
  ROUTE_NOT_FOUND: "hawkbit.server.error.repo.entityNotFound",
  JSON_INVALID: "hawkbit.server.error.rest.body.notReadable",
  ARTIFACT_WITHDRAWN: "hawkbit.server.error.artifact.binaryDeleted",
  RATE_LIMITED: "hawkbit.server.error.quota.tooManyRequests",
  INVALID_FIELD: "hawkbit.server.error.repo.constraintViolation",
  REQUEST_INVALID: "hawkbit.server.error.repo.constraintViolation",
};

/**
 * Answers an error as hawkBit's clients expect it. 401 has no body and no challenge. What a device tells is never answered
 * 5xx: a client that meets one may never send its report again, but every client repeats after 429.
 */
export function answerRefusal(
  exchange: Exchange,
  error: unknown,
  { baseHeaders }: { readonly baseHeaders: FlatHeaders },
): void {
  if (error instanceof DdiRefusal) {
    const { status, errorCode, message } = error;
    exchange.note({ code: errorCode });
    send(exchange, { status, errorCode, exceptionClass: error.name, message }, { baseHeaders, headers: {} });
    return;
  }
  const problem = problemToAnswer(exchange, error);
  if (problem === undefined) return;
  const status = statusOf(exchange, problem);
  if (status === 401) {
    sendJson(exchange, { status, baseHeaders });
    return;
  }
  const { code, message } = problem;
  const errorCode = ERROR_CODES[code] ?? `hawkbit.server.error.${code.toLowerCase()}`;
  send(exchange, { status, errorCode, exceptionClass: code, message }, { baseHeaders, headers: problem.headers });
}

function statusOf({ request }: Exchange, { code }: HttpProblem): number {
  const status = STATUSES[code] ?? PROBLEMS[code].status;
  return status >= 500 && request.method !== "GET" && request.method !== "HEAD" ? 429 : status;
}

function send(
  exchange: Exchange,
  error: {
    readonly status: number;
    readonly errorCode: string;
    readonly exceptionClass: string;
    readonly message: string;
  },
  sent: { readonly baseHeaders: FlatHeaders; readonly headers: Readonly<Record<string, string>> },
): void {
  const { status, ...body } = error;
  sendJson(exchange, { status, body, type: "application/json", ...sent });
}
