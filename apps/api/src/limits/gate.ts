import type { IncomingMessage } from "node:http";
import { type DeviceCredentials, hashToken, OtaError, type OtaErrorCode } from "@ota/domain";
import type { Exchange } from "../http/exchange.ts";
import { HttpProblem } from "../http/problems.ts";
import type { ServedRoute } from "../http/route.ts";
import type { LimitName, LimitObserver } from "./events.ts";
import type { FailedAuthentication } from "./failed-authentication.ts";
import type { Overload } from "./overload.ts";
import type { RateLimit } from "./rate-limit.ts";

/** Refuses requests before they cost anything. A route says by its `refusable` that its requests may be. */
export interface Gate {
  /**
   * Asked before anything else.
   *
   * @throws {HttpProblem} `SERVICE_BUSY` while the service is overloaded; `RATE_LIMITED` for an address that has failed
   * with too many credentials.
   */
  enter(route: ServedRoute, exchange: Exchange): void;
  /**
   * Asked with the device's credentials, before the database is.
   *
   * @throws {HttpProblem} `RATE_LIMITED` for a device that asks far more often than it is told to.
   */
  identified(route: ServedRoute, credentials: DeviceCredentials | undefined): void;
  /** Told of an error that a request ends with. */
  failed(error: unknown, exchange: Exchange): void;
}

/** What {@link createGate} is made of; what is `undefined` limits nothing. */
export interface GateOptions {
  readonly overload: Overload;
  readonly checks: RateLimit | undefined;
  readonly failures: FailedAuthentication | undefined;
  /** Whom failures count for; `undefined`: nobody, since the request shows no address but a trusted proxy's. */
  readonly addressOf: (request: IncomingMessage) => string | undefined;
  /** Within how many seconds those that were turned away come back. */
  readonly spreadSeconds: number;
  readonly observe: LimitObserver;
}

/** The least that a device is told to wait: an overload that is over sooner has served it a little later, no more. */
const LEAST_WAIT_SECONDS = 15;

export function createGate(options: GateOptions): Gate {
  const { overload, checks, failures, addressOf, spreadSeconds, observe } = options;
  const limited = (limit: LimitName, seconds: number, detail: string): HttpProblem => {
    observe({ kind: "limited", limit });
    return new HttpProblem("RATE_LIMITED", {
      detail,
      headers: { "Retry-After": String(seconds) },
      members: { retryAfterSeconds: seconds },
    });
  };

  return {
    enter(route, exchange) {
      const { cause } = overload;
      if (cause !== undefined && route.refusable) {
        overload.turnedAway(cause);
        // The overload itself is in the log; a line for each of thousands would only add to it.
        exchange.keepQuiet();
        throw turnedAway(spreadSeconds);
      }
      if (failures === undefined || !(route.refusable || route.auth === "operator")) return;
      const seconds = failures.refusal(() => addressOf(exchange.request));
      if (seconds === undefined) return;
      const detail = "Too many different credentials from this address were refused. Use those that are valid, later.";
      throw limited("failed_authentication", seconds, detail);
    },

    identified(route, credentials) {
      if (checks === undefined || credentials === undefined || !route.refusable) return;
      // Many devices share a gateway's token: there the serial tells them apart.
      const seconds = checks.take(keyOf(credentials.tokenHash) + (credentials.serial ?? ""));
      if (seconds === undefined) return;
      throw limited("check", seconds, "This device asks too often. Keep to pollAfterSeconds of the answers.");
    },

    failed(error, exchange) {
      if (failures === undefined || !isRefusedCredential(error)) return;
      const address = addressOf(exchange.request);
      const credential = hashToken(exchange.request.headers.authorization ?? "");
      if (address !== undefined) failures.failed(address, keyOf(credential));
    },
  };
}

/** Spread evenly, so that those that came together do not come back together. */
function turnedAway(spreadSeconds: number): HttpProblem {
  const span = Math.max(0, spreadSeconds - LEAST_WAIT_SECONDS);
  const seconds = LEAST_WAIT_SECONDS + Math.floor(Math.random() * (span + 1));
  return new HttpProblem("SERVICE_BUSY", {
    detail: "The service has more to do than it can, and has not looked at this check. Ask again later.",
    headers: { "Retry-After": String(seconds) },
    members: { retryAfterSeconds: seconds },
  });
}

/** Enough of a hash to tell a fleet's tokens apart. */
function keyOf(credential: Uint8Array): string {
  return Buffer.from(credential.buffer, credential.byteOffset, 16).toString("base64url");
}

const REFUSED_CREDENTIALS: ReadonlySet<OtaErrorCode> = new Set([
  "DEVICE_TOKEN_INVALID",
  "GATEWAY_TOKEN_INVALID",
  "OPERATOR_KEY_INVALID",
]);

function isRefusedCredential(error: unknown): boolean {
  return error instanceof OtaError && REFUSED_CREDENTIALS.has(error.code);
}
