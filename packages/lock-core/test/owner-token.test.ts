import { describe, expect, test } from "vitest";
import { setUp } from "./support.ts";

describe("owner tokens", () => {
  test("are 32 random bytes in base64: never empty, never a reserved marker, never twice", async () => {
    const { locks, store } = setUp();
    for (let nth = 0; nth < 1_200; nth++) await locks.createLock(`${nth}`).tryAcquire();
    const owners = store.requests.map(({ owner }) => owner);
    expect(new Set(owners).size).toBe(1_200);
    for (const owner of owners) {
      expect(owner).toMatch(/^[A-Za-z0-9+/]{43}=$/);
      expect(Buffer.from(owner, "base64")).toHaveLength(32);
    }
  });
});
