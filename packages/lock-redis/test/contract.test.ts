import { storeContract } from "@ota/lock-core/testing";
import { createTestRedis, hasTestRedis, startTcpProxy, type TcpProxy, type TestRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { connect, until } from "./support.ts";

describe.skipIf(!hasTestRedis)("RedisStore keeps the store contract", () => {
  let server: TestRedis;
  let proxy: TcpProxy;
  let direct: Redis;
  let clients: readonly [Redis, Redis];
  let stores: readonly [RedisStore, RedisStore];

  beforeAll(async () => {
    server = await createTestRedis();
    proxy = await startTcpProxy({ target: server });
    const url = server.urlBy(proxy);
    direct = await connect(server.url);
    clients = [await connect(url), await connect(url)];
    stores = [new RedisStore(clients[0]), new RedisStore(clients[1])];
  });
  afterAll(async () => {
    for (const client of [direct, ...clients]) client.disconnect();
    await proxy.close();
    await server.stop();
  });

  const cases = storeContract({
    stores: () => stores,
    claims: ["shared", "fencing", "inspection", "waiting"],
    loseTokens: async (key) => void (await direct.del(`{${key}}:fence`)),
    plantString: async (key) => void (await direct.set(key, "somebody else's")),
    plantOther: async (key) => void (await direct.hset(key, "field", "value")),
    contents: async (key) => [(await direct.dumpBuffer(key))?.toString("hex"), await direct.pexpiretime(key)],
    lifetimeMs: async (key) => {
      const remainingMs = await direct.pttl(key);
      if (remainingMs === -2) return undefined;
      return remainingMs === -1 ? Number.POSITIVE_INFINITY : remainingMs;
    },
    breakBackend: async () => {
      proxy.refuse();
      proxy.cut();
      return async () => {
        proxy.resume();
        await until(() => clients.every((client) => client.status === "ready"));
      };
    },
  });
  it.each(cases)("rule $rule: $title", (contractCase) => contractCase.run());
});
