import { describe, expect, test } from "vitest";
import { FailedAuthentication, networkOf } from "../../src/limits/failed-authentication.ts";

function failures() {
  return new FailedAuthentication({ limit: 3, shared: undefined, observe: () => {} });
}

describe("FailedAuthentication", () => {
  test("shuts out an address that was wrong with too many different credentials, and no other", () => {
    const limit = failures();
    for (const credential of ["a", "b", "c"]) {
      expect(limit.refusal(() => "192.0.2.1")).toBeUndefined();
      limit.failed("192.0.2.1", credential);
    }
    expect(limit.refusal(() => "192.0.2.1")).toBeGreaterThan(0);
    expect(limit.refusal(() => "192.0.2.2")).toBeUndefined();
  });

  test("one wrong credential counts once, however often it comes", () => {
    const limit = failures();
    for (let i = 0; i < 100; i++) limit.failed("192.0.2.1", "the one of a device that was set up badly");
    expect(limit.refusal(() => "192.0.2.1")).toBeUndefined();
  });

  test("a /64 counts as one address", () => {
    const limit = failures();
    for (const host of ["1", "2", "3"]) limit.failed(`2001:db8:1:2::${host}`, host);
    expect(limit.refusal(() => "2001:db8:1:2:ffff::9")).toBeGreaterThan(0);
    expect(limit.refusal(() => "2001:db8:1:3::1")).toBeUndefined();
  });

  test("asks for no address while nobody has failed", () => {
    expect(
      failures().refusal(() => {
        throw new Error("asked");
      }),
    ).toBeUndefined();
  });
});

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0DB8:0001:0002::1", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
])("networkOf %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
