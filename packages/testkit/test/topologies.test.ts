import { hasFakeTime, hasRedis, startRedis, startRedisCluster, startRedisSentinel } from "@ota/testkit";
import { describe, expect, test } from "vitest";

describe.skipIf(!hasRedis)("startRedisCluster", () => {
  test("three masters share the slots, each key has its owner, and replicas follow", async () => {
    await using cluster = await startRedisCluster({ replicasPerMaster: 1 });
    const { owner, other, slot } = await cluster.locate("key");
    expect(slot).toBe(12539); // As the Redis documentation computes it: CRC16 modulo 16384.
    expect(await owner.cli("SET", "key", "value")).toBe("OK");
    expect(await other.cli("SET", "key", "value")).toMatch(`MOVED ${slot} ${owner.host}:${owner.port}`);
    expect(await owner.cli("WAIT", "1", "1000")).toBe("1");
    expect(cluster.replicas).toHaveLength(3);
  });
});

describe.skipIf(!hasRedis)("startRedisSentinel", () => {
  test("the sentinels promote the replica when the master has died", async () => {
    await using group = await startRedisSentinel();
    await group.master.cli("SET", "key", "value");
    expect(await group.master.cli("WAIT", "1", "1000")).toBe("1");
    await group.master.kill();
    await group.untilMasterIs(group.replica);
    expect(await group.replica.cli("GET", "key")).toBe("value");
  });
});

describe.skipIf(!hasRedis || !hasFakeTime)("a server with an adjustable clock", () => {
  const seconds = async (server: { cli(...args: string[]): Promise<string> }) =>
    Number((await server.cli("TIME")).split("\n")[0]);

  test("goes with the machine's until it is stepped or stopped, also across a restart", async () => {
    await using server = await startRedis({ adjustableClock: true });
    const off = async () => Math.abs((await seconds(server)) - Date.now() / 1000);
    expect(await off()).toBeLessThan(5);
    server.setClock({ offsetMs: -3_600_000 });
    expect(Math.abs((await off()) - 3_600)).toBeLessThan(5);
    server.setClock({ stoppedAt: new Date("2030-01-02T03:04:05Z") });
    expect(await server.cli("EVAL", "return redis.call('TIME')", "0")).toBe(
      `${Date.parse("2030-01-02T03:04:05Z") / 1000}\n0`,
    );
    await server.restart();
    expect(await seconds(server)).toBe(Date.parse("2030-01-02T03:04:05Z") / 1000);
  });

  test("other servers refuse to have their clock set", async () => {
    await using server = await startRedis();
    expect(() => server.setClock({ offsetMs: 1 })).toThrow(/adjustableClock/);
  });
});
