import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createArtifactUrls } from "../../src/artifacts/artifact-urls.ts";

const firmwareId = "0197b1c0-0000-7000-8000-000000000001";
const key = randomBytes(32);
const BASE = "https://ota.example";
let now = Date.UTC(2030, 0, 1, 12, 34, 56);
const urls = createArtifactUrls({ key, validSeconds: 3600, nowMs: () => now });

describe("createArtifactUrls", () => {
  test("a signed URL is valid, for its firmware and time only", () => {
    const signed = read(urls.sign(firmwareId, { publicUrl: BASE }));
    expect(urls.verify(signed)).toBe("valid");
    expect(urls.verify({ ...signed, firmwareId: firmwareId.replace("1", "2") })).toBe("forged");
    expect(urls.verify({ ...signed, expires: signed.expires + 1 })).toBe("forged");
    expect(urls.verify({ ...signed, signature: `${signed.signature}AA` })).toBe("forged");
    expect(urls.verify({ ...signed, signature: "" })).toBe("forged");
    expect(urls.verify({ ...signed, finishing: true })).toBe("forged");
  });

  test("a URL that outlives a withdrawal says so, and is no other's", () => {
    const signed = read(urls.sign(firmwareId, { publicUrl: BASE, finishing: true }));
    expect(signed.finishing).toBe(true);
    expect(urls.verify(signed)).toBe("valid");
    expect(urls.verify({ ...signed, finishing: false })).toBe("forged");
    expect(read(urls.sign(firmwareId, { publicUrl: BASE })).signature).not.toBe(signed.signature);
  });

  test("it works for at least the validity and at most half as long again, then it has expired", () => {
    const signed = read(urls.sign(firmwareId, { publicUrl: BASE }));
    const start = now;
    now = start + 3600_000 - 1;
    expect(urls.verify(signed)).toBe("valid");
    now = start + 5400_000;
    expect(urls.verify(signed)).toBe("expired");
    now = start;
  });

  test("within half the validity everybody gets the same URL", () => {
    const slotStart = Math.floor(now / 1_800_000) * 1_800_000;
    now = slotStart + 1000;
    const first = urls.sign(firmwareId, { publicUrl: BASE });
    now = slotStart + 1_799_000;
    expect(urls.sign(firmwareId, { publicUrl: BASE })).toBe(first);
    now = slotStart + 1_801_000;
    expect(urls.sign(firmwareId, { publicUrl: BASE })).not.toBe(first);
  });

  test("a URL signed with another key is forged, unless that key is accepted; none is signed with an accepted one", () => {
    const [otherKey, unusedKey] = [randomBytes(32), randomBytes(32)];
    const others = createArtifactUrls({ key: otherKey, validSeconds: 3600, nowMs: () => now });
    const signed = read(others.sign(firmwareId, { publicUrl: "" }));
    expect(urls.verify(signed)).toBe("forged");

    const rotating = createArtifactUrls({
      ...{ key, acceptedKeys: [unusedKey, otherKey], validSeconds: 3600, nowMs: () => now },
    });
    expect(rotating.verify(signed)).toBe("valid");
    expect(rotating.verify({ ...signed, expires: signed.expires + 1 })).toBe("forged");
    const own = rotating.sign(firmwareId, { publicUrl: BASE });
    expect(own).toBe(urls.sign(firmwareId, { publicUrl: BASE }));
    expect(rotating.verify(read(own))).toBe("valid");

    const start = now;
    now = start + 5_400_000;
    expect(rotating.verify(signed)).toBe("expired");
    now = start;
  });
});

function read(url: string) {
  const match =
    /^(?:https:\/\/ota\.example)?\/v1\/firmware\/(.+)\/artifact\?expires=(\d+)(&finishing=true)?&signature=([\w-]+)$/.exec(
      url,
    );
  const [, firmwareId = "", expires, marked, signature = ""] = match ?? [];
  return { firmwareId, expires: Number(expires), finishing: marked !== undefined, signature };
}
