import { afterEach, describe, expect, it, vi } from "vitest";
import { createTestRedis, hasRedis, startRedis } from "../src/index.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

describe.skipIf(!hasRedis)("createTestRedis", () => {
  it("uses the server of TEST_REDIS_URL, in a database of its own, and leaves it running", async () => {
    await using server = await startRedis();
    vi.stubEnv("TEST_REDIS_URL", server.url);
    const redis = await createTestRedis();
    expect(redis.url).toBe(`${server.url}/15`);
    await redis.stop();
    expect(await server.cli("ping")).toBe("PONG");
  });

  it("keeps the database that the URL names, also by another address", async () => {
    vi.stubEnv("TEST_REDIS_URL", "redis://user:word@127.0.0.1:7001/3");
    const redis = await createTestRedis();
    expect(redis).toMatchObject({ host: "127.0.0.1", port: 7001, url: "redis://user:word@127.0.0.1:7001/3" });
    expect(redis.urlBy({ host: "127.0.0.2", port: 7002 })).toBe("redis://user:word@127.0.0.2:7002/3");
  });

  it("starts a private server without it, which ends with stop", async () => {
    vi.stubEnv("TEST_REDIS_URL", "");
    const redis = await createTestRedis();
    await redis.stop();
    await expect(fetch(`http://${redis.host}:${redis.port}`)).rejects.toThrow("fetch failed");
  });
});
