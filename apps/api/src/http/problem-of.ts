import { OtaError, type OtaErrorCode, ServiceBusyError } from "@ota/domain";
import { databaseFault } from "../database-errors.ts";
import { HttpProblem, type ProblemCode } from "./problems.ts";

/** The problem that answers an error, whatever was thrown. What is no expected error becomes `INTERNAL_ERROR`. */
export function problemOf(error: unknown): HttpProblem {
  if (error instanceof HttpProblem) return error;
  if (error instanceof OtaError) return ofDomain(error);
  if (error instanceof URIError)
    return new HttpProblem("REQUEST_INVALID", { detail: "The path's percent-encoding is not valid." });
  switch (databaseFault(error)) {
    case "unavailable":
      return new HttpProblem("DATABASE_UNAVAILABLE", {
        // Whether a COMMIT whose answer was lost has counted cannot be known here.
        detail:
          "The service cannot reach its database. Try again later: what was asked for may or may not have been done.",
        headers: { "Retry-After": String(outageRetrySeconds()) },
        cause: error,
      });
    case "busy":
      return new HttpProblem("SERVICE_BUSY", {
        detail: "The database gave up on this request, which was rolled back. Try again.",
        headers: { "Retry-After": "1" },
        cause: error,
      });
    case "bad-data":
      return new HttpProblem("INVALID_FIELD", {
        detail: "A value cannot be stored. Nothing was changed.",
        cause: error,
      });
    default:
      return new HttpProblem("INTERNAL_ERROR", {
        detail: "The request failed for a reason of the service's own. Its log has more under the request's id.",
        cause: error,
      });
  }
}

/** Spread, so that a fleet does not come back in the second in which the database does. */
function outageRetrySeconds(): number {
  return 5 + Math.floor(Math.random() * 10);
}

function ofDomain(error: OtaError): HttpProblem {
  // A code of the domain is a problem's code as it is: that they all are is checked by the compiler here.
  const code: ProblemCode = error.code satisfies OtaErrorCode;
  return new HttpProblem(code, {
    detail: error.message,
    ...(error.details === undefined ? {} : { members: error.details }),
    headers: headersOf(error),
    cause: error.cause,
  });
}

const UNAUTHORIZED: ReadonlySet<OtaErrorCode> = new Set([
  "DEVICE_TOKEN_INVALID",
  "GATEWAY_TOKEN_INVALID",
  "OPERATOR_KEY_INVALID",
]);

function headersOf(error: OtaError): Readonly<Record<string, string>> {
  if (error instanceof ServiceBusyError) return { "Retry-After": String(error.retryAfterSeconds) };
  return UNAUTHORIZED.has(error.code) ? { "WWW-Authenticate": 'Bearer error="invalid_token"' } : {};
}
