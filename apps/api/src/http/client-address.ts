import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { trustOf } from "./trusted-proxies.ts";

/** Names a request's client for the log. `undefined`: its connection is gone. */
export type ClientAddressOf = (request: IncomingMessage) => string | undefined;

/**
 * The peer's address; where the peer is a trusted proxy, the last one of `X-Forwarded-For` that is not. What lies before
 * that was written by somebody who is not trusted.
 *
 * @param trustedProxies addresses, subnets, and names of ranges
 */
export function clientAddresses(trustedProxies: readonly string[]): ClientAddressOf {
  if (trustedProxies.length === 0) return ({ socket }) => socket.remoteAddress;
  const isTrusted = trustOf(trustedProxies);
  return ({ socket, headers }) => {
    let address = socket.remoteAddress;
    const forwarded = String(headers["x-forwarded-for"] ?? "").split(",");
    while (address !== undefined && isTrusted(address)) {
      const earlier = forwarded.pop()?.trim();
      if (earlier === undefined || isIP(earlier) === 0) break;
      address = earlier;
    }
    return address;
  };
}
