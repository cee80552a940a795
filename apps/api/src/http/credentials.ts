import type { IncomingMessage } from "node:http";
import { HttpProblem } from "./problems.ts";

/** Any printable ASCII: an operator key that was chosen outside need not be base64. Ours are far shorter than 512. */
const BEARER = /^Bearer +([!-~]{1,512})$/i;

const CHALLENGE = { "WWW-Authenticate": "Bearer" };

/**
 * The Bearer token of a request; `undefined`: there is no `Authorization` header.
 *
 * @throws {HttpProblem} `CREDENTIALS_MISSING` when the header holds something else, several values among them.
 */
export function bearerToken(request: IncomingMessage): string | undefined {
  const header = request.headers.authorization;
  if (header === undefined) return undefined;
  const token = BEARER.exec(header)?.[1];
  if (token !== undefined) return token;
  throw new HttpProblem("CREDENTIALS_MISSING", {
    detail: "The Authorization header must be exactly one Bearer token: Authorization: Bearer <token>.",
    headers: CHALLENGE,
  });
}

/** As {@link bearerToken}, where there must be one. */
export function requiredBearerToken(request: IncomingMessage, what: string): string {
  const token = bearerToken(request);
  if (token !== undefined) return token;
  throw new HttpProblem("CREDENTIALS_MISSING", {
    detail: `Send ${what} in the header Authorization: Bearer <token>.`,
    headers: CHALLENGE,
  });
}
