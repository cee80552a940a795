import { describe, expect, it } from "vitest";
import { hashToken } from "../src/index.ts";
import { isPublicId, newPublicId } from "../src/public-id.ts";
import { newToken } from "../src/tokens.ts";

describe("tokens", () => {
  it("a new token holds 256 bits and never comes twice", () => {
    const tokens = Array.from({ length: 1000 }, newToken);
    expect(new Set(tokens).size).toBe(1000);
    for (const token of tokens) expect(Buffer.from(token, "base64url")).toHaveLength(32);
  });

  it("the hash of a token is its SHA-256", () => {
    expect(hashToken("abc").toString("hex")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });
});

describe("public ids", () => {
  it("are UUIDs of version 7 and variant 10, in the order of time", () => {
    const before = Date.now();
    const id = newPublicId();
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const time = Number.parseInt(id.replace("-", "").slice(0, 12), 16);
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(Date.now());
  });

  it("never come twice within a millisecond", () => {
    expect(new Set(Array.from({ length: 10_000 }, newPublicId)).size).toBe(10_000);
  });

  it("are told from what PostgreSQL would refuse as a uuid", () => {
    expect(isPublicId(newPublicId())).toBe(true);
    for (const text of ["", "\0", `${newPublicId()}\n`, newPublicId().replaceAll("-", ""), `{${newPublicId()}}`]) {
      expect(isPublicId(text)).toBe(false);
    }
  });
});
