import type { IncomingMessage } from "node:http";
import { trustOf } from "./trusted-proxies.ts";

/** Where the client of a request reaches the service, without a trailing slash: the base of absolute links. */
export type PublicUrlOf = (request: IncomingMessage) => string;

/** What {@link publicUrls} decides by. */
export interface PublicUrlOptions {
  /** What the configuration says; it is the answer to every request. */
  readonly configured: string | undefined;
  /** Where a client on this machine reaches the service. */
  readonly address: string;
  /** Addresses, subnets and names of ranges whose forwarding headers are believed. */
  readonly trustedProxies: readonly string[];
}

/**
 * The configured URL; without one, what a trusted proxy says that the client has asked: `X-Forwarded-Proto`,
 * `X-Forwarded-Host` (or the `Host` that it has kept), `X-Forwarded-Port` and `X-Forwarded-Prefix`. Anybody else's
 * headers, and a proxy's that make no URL, count for nothing: then it is the address of the service.
 */
export function publicUrls({ configured, address, trustedProxies }: PublicUrlOptions): PublicUrlOf {
  if (configured !== undefined) return () => configured;
  if (trustedProxies.length === 0) return () => address;
  const isTrusted = trustOf(trustedProxies);
  return ({ socket, headers }) => {
    if (socket.remoteAddress === undefined || !isTrusted(socket.remoteAddress)) return address;
    return forwardedUrl(headers) ?? address;
  };
}

function forwardedUrl(headers: IncomingMessage["headers"]): string | undefined {
  const proto = firstOf(headers["x-forwarded-proto"]);
  const forwardedHost = firstOf(headers["x-forwarded-host"]);
  // A proxy that tells neither says nothing about the client's request.
  if (proto === undefined && forwardedHost === undefined) return undefined;
  const host = forwardedHost ?? headers.host ?? "";
  const port = firstOf(headers["x-forwarded-port"]);
  const prefix = (firstOf(headers["x-forwarded-prefix"]) ?? "").replace(/\/+$/, "");
  const scheme = proto ?? "http";
  if (!/^https?$/.test(scheme) || !HOST.test(host) || !PREFIX.test(prefix)) return undefined;
  if (port !== undefined && !/^\d{1,5}$/.test(port)) return undefined;
  const authority = port === undefined || /:\d+$/.test(host) ? host : `${host}:${port}`;
  // Drops the scheme's own port, and refuses a port that cannot be.
  const url = URL.parse(`${scheme}://${authority}`);
  return url === null ? undefined : `${url.origin}${prefix}`;
}

/** A name or an address, with its port if it has one. */
const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** A path that needs no escaping. */
const PREFIX = /^(?:\/[A-Za-z0-9._~-]{1,100}){0,10}$/;

/** What the proxy next to the client said: each one after it adds its own behind a comma. */
function firstOf(header: string | string[] | undefined): string | undefined {
  const value = String(header ?? "")
    .split(",", 1)[0]
    ?.trim();
  return value === "" ? undefined : value;
}
