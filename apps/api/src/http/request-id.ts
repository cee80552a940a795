import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** What may be echoed and logged as it is: no blanks, quotes or control characters, and not long. */
const SANE = /^[A-Za-z0-9._~:/+=-]{1,100}$/;

/** The request's id: the `X-Request-Id` that came with it where that is sane, else a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && SANE.test(given) ? given : randomUUID();
}
