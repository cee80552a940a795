import { LockFactory, LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisSentinel, startRedisSentinel } from "@ota/testkit";
import * as six from "ioredis";
import * as five from "ioredis-5";
import { afterAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { newOwner, until } from "./support.ts";

const TTL_MS = 60_000;

// At once, as each waits for the most part: for its servers to know each other, and for a failover.
describe.skipIf(!hasRedis).concurrent("RedisStore over Sentinel", () => {
  const clients: { disconnect(): void }[] = [];
  afterAll(() => {
    for (const client of clients.splice(0)) client.disconnect();
  });

  function newStore(group: RedisSentinel, library: typeof six | typeof five = six): RedisStore {
    const sentinels = group.sentinels.map(({ host, port }) => ({ host, port }));
    const retrying = { retryStrategy: () => 50, sentinelRetryStrategy: () => 50, sentinelReconnectStrategy: () => 50 };
    const client = new (library.Redis as typeof six.Redis)({ sentinels, name: group.name, ...retrying });
    client.on("error", () => {});
    clients.push(client);
    return new RedisStore(client);
  }

  it.each([
    ["ioredis 5", five],
    ["ioredis 6", six],
  ] as const)(
    "of %s: when the master dies, locks are errors until the replica is promoted, then work",
    async (_name, library) => {
      await using group = await startRedisSentinel();
      const store = newStore(group, library);
      const rival = newStore(group, library);
      const held = { key: "held", owner: newOwner(), ttlMs: TTL_MS };
      await store.acquire({ ...held, fencing: true });
      const token = (await store.acquire({ ...held, fencing: true })) as { fencingToken: bigint };
      await group.master.cli("WAIT", "1", "1000"); // Seen by the replica: such a lease survives.

      await group.master.kill();
      const errors: unknown[] = [];
      const answer = async () => store.isHeld(held).catch((error: unknown) => void errors.push(error));
      await until(async () => (await answer()) !== undefined);
      expect(await store.isHeld(held)).toBe(true);
      await group.untilMasterIs(group.replica);
      for (const error of errors) expect(error).toBeInstanceOf(LockStoreError);

      expect(await rival.acquire({ ...held, owner: newOwner() })).toEqual({ outcome: "contended" });
      expect(await store.extend(held)).toBe("extended");
      expect(await store.release(held)).toBe("released");
      const next = (await rival.acquire({ ...held, owner: newOwner(), fencing: true })) as { fencingToken: bigint };
      expect(next.fencingToken).toBeGreaterThan(token.fencingToken);
    },
  );

  it("a lease that the replica never saw is gone after the failover, which its holder is told; fencing goes on", async () => {
    await using group = await startRedisSentinel();
    const store = newStore(group);
    const locks = new LockFactory(store, { ttlMs: TTL_MS, fencing: true, logger: silent });
    const lock = locks.createLock("unseen");
    await (await lock.acquire()).release();
    await group.master.cli("WAIT", "1", "1000");
    group.replica.pause();
    await group.master.cli("CLIENT", "KILL", "TYPE", "replica"); // From now on it gets nothing.
    const lease = await lock.acquire();
    await group.master.kill();
    group.replica.resume();
    await group.untilMasterIs(group.replica);

    const other = new LockFactory(newStore(group), { ttlMs: TTL_MS, fencing: true, logger: silent });
    const second = await other.createLock("unseen").acquire();
    expect(lease.isExpired()).toBe(false); // Two owners: what asynchronous replication cannot rule out.
    expect(second.fencingToken).toBeGreaterThan(lease.fencingToken as bigint); // A guarded write tells them apart.
    await until(async () => (await lease.extend().catch(() => undefined)) === "lost");
    expect(lease.status).toBe("lost");
    await second.release();
  });
});

const silent = { debug() {}, info() {}, warn() {}, error() {} };
