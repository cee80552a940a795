import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** What may be echoed and logged as it is: no blanks, quotes or control characters, and not long. */
const SANE = /^[A-Za-z0-9._~:/+=-]{1,100}$/;

/** Tells this process's requests from those of every other, also after a restart. */
const PROCESS_PART = randomBytes(9).toString("base64url");
let count = 0;

/** The request's id: the `X-Request-Id` that came with it where that is sane, else a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && SANE.test(given) ? given : `${PROCESS_PART}-${(++count).toString(36)}`;
}
