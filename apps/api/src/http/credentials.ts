import type { IncomingMessage } from "node:http";
import { type DeviceCredentials, hashToken } from "@ota/domain";
import { HttpProblem } from "./problems.ts";
import { serialSchema } from "./schemas.ts";
import { fieldsInvalid } from "./validate.ts";

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
  return token ?? missing(what);
}

function missing(what: string): never {
  throw new HttpProblem("CREDENTIALS_MISSING", {
    detail: `Send ${what} in the header Authorization: Bearer <token>.`,
    headers: CHALLENGE,
  });
}

/** Names the device that asks through a gateway; the Bearer token is then the gateway's. */
export const SERIAL_HEADER = "ota-device-serial";

/**
 * What a device shows of itself; `undefined`: it shows no token.
 *
 * @throws {HttpProblem} `CREDENTIALS_MISSING` as {@link bearerToken}; `FIELDS_INVALID` on a serial that none can have.
 */
export function deviceCredentials(request: IncomingMessage): DeviceCredentials | undefined {
  const token = bearerToken(request);
  if (token === undefined) return undefined;
  const serial = request.headers[SERIAL_HEADER];
  if (serial === undefined) return { tokenHash: hashToken(token) };
  // Node joins a header that comes several times by commas, which no serial has.
  const parsed = serialSchema.safeParse(serial);
  if (!parsed.success) {
    throw fieldsInvalid(parsed.error.issues.map(({ message }) => ({ field: `headers.${SERIAL_HEADER}`, message })));
  }
  return { tokenHash: hashToken(token), serial: parsed.data };
}

/** As {@link deviceCredentials}, where there must be some. */
export function requiredDeviceCredentials(request: IncomingMessage): DeviceCredentials {
  return deviceCredentials(request) ?? missing("the device's token");
}
