import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** Names a request's client for the log. `undefined`: its connection is gone. */
export type ClientAddressOf = (request: IncomingMessage) => string | undefined;

/** Ranges that proxies usually stand in. */
const NAMED_RANGES: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/**
 * The peer's address; where the peer is a trusted proxy, the last one of `X-Forwarded-For` that is not. What lies before
 * that was written by somebody who is not trusted.
 *
 * @param trustedProxies addresses, subnets, and names of ranges
 */
export function clientAddresses(trustedProxies: readonly string[]): ClientAddressOf {
  if (trustedProxies.length === 0) return ({ socket }) => socket.remoteAddress;
  const trusted = listOf(trustedProxies);
  return ({ socket, headers }) => {
    let address = socket.remoteAddress;
    const forwarded = String(headers["x-forwarded-for"] ?? "").split(",");
    while (address !== undefined && isTrusted(trusted, address)) {
      const earlier = forwarded.pop()?.trim();
      if (earlier === undefined || isIP(earlier) === 0) break;
      address = earlier;
    }
    return address;
  };
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges.flatMap((each) => NAMED_RANGES[each] ?? each)) {
    const [address = "", bits] = range.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

function isTrusted(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}
