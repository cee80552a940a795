import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { publicUrls } from "../../src/http/public-url.ts";

const address = "http://127.0.0.1:3000";

function request(headers: IncomingMessage["headers"], remoteAddress: string | undefined = "10.1.2.3") {
  return { socket: { remoteAddress }, headers: { host: "ota.internal:3000", ...headers } } as IncomingMessage;
}

describe("publicUrls", () => {
  const behindProxy = publicUrls({ configured: undefined, address, trustedProxies: ["10.0.0.0/8"] });

  test.each([
    [{ "x-forwarded-proto": "https", "x-forwarded-host": "ota.example.com" }, "https://ota.example.com"],
    [{ "x-forwarded-proto": "https", host: "ota.example.com" }, "https://ota.example.com"],
    [{ "x-forwarded-host": "ota.example.com:8080" }, "http://ota.example.com:8080"],
    [{ "x-forwarded-proto": "https", "x-forwarded-host": "a.example:443" }, "https://a.example"],
    [
      { "x-forwarded-proto": "https", "x-forwarded-host": "a.example", "x-forwarded-port": "8443" },
      "https://a.example:8443",
    ],
    [
      { "x-forwarded-proto": "https", "x-forwarded-host": "a.example:1", "x-forwarded-port": "8443" },
      "https://a.example:1",
    ],
    [
      { "x-forwarded-proto": "https", "x-forwarded-host": "a.example", "x-forwarded-prefix": "/fleet/ota/" },
      "https://a.example/fleet/ota",
    ],
    [{ "x-forwarded-proto": "https, http", "x-forwarded-host": "a.example, b.internal" }, "https://a.example"],
    [{ "x-forwarded-proto": "https", "x-forwarded-host": "[2001:db8::1]:8443" }, "https://[2001:db8::1]:8443"],
  ])("a trusted proxy's %j make %s", (headers, url) => {
    expect(behindProxy(request(headers))).toBe(url);
    expect(behindProxy(request(headers, "203.0.113.7"))).toBe(address);
    expect(publicUrls({ configured: undefined, address, trustedProxies: [] })(request(headers))).toBe(address);
    const configured = "https://configured.example";
    expect(publicUrls({ configured, address, trustedProxies: ["10.0.0.0/8"] })(request(headers))).toBe(configured);
  });

  test.each([
    {},
    { "x-forwarded-port": "8443", "x-forwarded-prefix": "/x" },
    { "x-forwarded-proto": "javascript", "x-forwarded-host": "a.example" },
    { "x-forwarded-proto": "https", "x-forwarded-host": "a.example/path" },
    { "x-forwarded-proto": "https", "x-forwarded-host": 'a.example"onload' },
    { "x-forwarded-proto": "https", "x-forwarded-host": "user@a.example" },
    { "x-forwarded-proto": "https", "x-forwarded-host": "a.example:99999" },
    { "x-forwarded-proto": "https", "x-forwarded-host": "a.example", "x-forwarded-port": "x" },
    { "x-forwarded-proto": "https", "x-forwarded-host": "a.example", "x-forwarded-prefix": "//evil.example" },
    { "x-forwarded-proto": "https", "x-forwarded-host": "a.example", "x-forwarded-prefix": "/%0d%0a" },
    { "x-forwarded-proto": "https", "x-forwarded-host": "a".repeat(300) },
  ])("%j make no URL: it is the address", (headers) => {
    expect(behindProxy(request(headers))).toBe(address);
  });

  test("a request whose connection is gone has the address", () => {
    expect(behindProxy({ ...request({ "x-forwarded-proto": "https" }), socket: {} } as IncomingMessage)).toBe(address);
  });
});
