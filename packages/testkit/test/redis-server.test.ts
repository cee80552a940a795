import { hasRedis, startRedis } from "@ota/testkit";
import { describe, expect, test } from "vitest";

describe.skipIf(!hasRedis)("startRedis", () => {
  test("a private server answers", async () => {
    await using redis = await startRedis();
    expect(await redis.cli("PING")).toBe("PONG");
  });
});
