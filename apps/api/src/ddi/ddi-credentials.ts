import type { IncomingMessage } from "node:http";
import { type DeviceCredentials, hashToken } from "@ota/domain";
import { trustOf } from "../http/trusted-proxies.ts";
import type { DdiAuthorities } from "./ddi-authorities.ts";

/** Finds what a request shows of the device that it says it is; `undefined`: nothing that could be believed. */
export type DdiCredentialsOf = (request: IncomingMessage, controllerId: string) => DeviceCredentials | undefined;

/** What {@link ddiCredentials} goes by. */
export interface DdiCredentialsOptions {
  /** By their names in lower case; empty: header authentication is off. */
  readonly authorities: DdiAuthorities;
  readonly trustedProxies: readonly string[];
}

/** As hawkBit has it: the scheme in exactly this case, and one space. */
const TOKEN = /^(TargetToken|GatewayToken) ([!-~]{1,512})$/;

/**
 * Header authentication, then a target token, then a gateway token. A target token counts for the device that the URL
 * names alone.
 */
export function ddiCredentials({ authorities, trustedProxies }: DdiCredentialsOptions): DdiCredentialsOf {
  const isTrusted = trustOf(trustedProxies);
  return (request, controllerId) => {
    const { headers, socket } = request;
    if (authorities.size > 0 && headers["x-controller-id"] === controllerId && isTrusted(socket.remoteAddress ?? "")) {
      const vouched = namedAuthorities(headers).find((name) => authorities.has(name));
      const gateway = vouched === undefined ? undefined : authorities.get(vouched);
      if (gateway !== undefined) return { tokenHash: hashToken(gateway.gatewayToken), serial: controllerId };
    }
    const [, scheme, token] = TOKEN.exec(headers.authorization ?? "") ?? [];
    if (token === undefined) return undefined;
    const tokenHash = hashToken(token);
    return scheme === "TargetToken" ? { tokenHash, ownSerial: controllerId } : { tokenHash, serial: controllerId };
  };
}

/** `X-Authority` as a list, and `X-Authority-0`, `X-Authority-1`, …: one for each certificate of the chain. */
function namedAuthorities(headers: IncomingMessage["headers"]): readonly string[] {
  return Object.entries(headers)
    .filter(([name]) => /^x-authority(?:-\d{1,3})?$/.test(name))
    .flatMap(([, value]) => String(value).split(/[;,]/))
    .map((name) => name.trim().toLowerCase());
}
