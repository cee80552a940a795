import type { RouteDefinition } from "./route.ts";
import type { FlatHeaders } from "./send.ts";

/** What devices need: their answers are counted in millions and read by small machines, and no browser shows them. */
const FOR_DEVICES: FlatHeaders = ["Cache-Control", "no-store", "X-Content-Type-Options", "nosniff"];

/** What a browser is told on top: the API's answers are neither pages, frames nor anybody else's resources. */
const FOR_BROWSERS: FlatHeaders = [
  ...FOR_DEVICES,
  ...["Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"],
  ...["Cross-Origin-Resource-Policy", "same-origin"],
  ...["Referrer-Policy", "no-referrer"],
];

/** One year, the least that browsers' preload lists take. */
const STRICT_TRANSPORT: FlatHeaders = ["Strict-Transport-Security", "max-age=31536000"];

/** The headers that every answer carries, made once. */
export interface BaseHeaders {
  readonly forDevices: FlatHeaders;
  readonly forBrowsers: FlatHeaders;
}

/** They are the same for every request: what a proxy says of one of them does not hold a browser to TLS for a year. */
export function baseHeaders({ sendsOnlyByTls = false }: { readonly sendsOnlyByTls?: boolean }): BaseHeaders {
  const transport = sendsOnlyByTls ? STRICT_TRANSPORT : [];
  return { forDevices: FOR_DEVICES, forBrowsers: [...FOR_BROWSERS, ...transport] };
}

/** Those of one route. */
export function baseHeadersOf(route: RouteDefinition, headers: BaseHeaders): FlatHeaders {
  return route.auth === "device" ? headers.forDevices : headers.forBrowsers;
}
