import { type Lease, LockFactory } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis, startTcpProxy } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore, type RedisStoreOptions } from "../src/index.ts";
import { connect, failure, newKey, newOwner, pause, until } from "./support.ts";

describe.skipIf(!hasRedis)("what makes room in a lock of RedisStore without being a release of its holder", () => {
  let server: RedisServer;
  let admin: Redis;
  let clients: readonly [Redis, Redis];
  const stores: RedisStore[] = [];
  let key: string;

  beforeAll(async () => {
    server = await startRedis();
    admin = await connect(server.url);
    clients = [await connect(server.url), await connect(server.url)];
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
    for (const client of [admin, ...clients]) client.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    key = newKey();
  });

  function makeStore(client: Redis = clients[0], options: RedisStoreOptions = {}): RedisStore {
    const store = new RedisStore(client, options);
    stores.push(store);
    return store;
  }

  /** Retries are far apart, so that what is fast is fast by being woken. */
  const lockOf = (store: RedisStore) =>
    new LockFactory(store, { ttlMs: 30_000, waitTimeoutMs: 20_000, retryDelayMs: 20_000 }).createLock(key);

  /** Waits until so many stores are in line and are sure to hear. */
  async function untilInLine(count: number): Promise<void> {
    const inLine = () => admin.zrange(`{${key}}:queue`, 0, "-1");
    await until(async () => (await inLine()).filter((name) => name.startsWith("+")).length === count);
  }

  it("wakes the readers who wait, one by the other, when the writer is demoted", async () => {
    const lease = await lockOf(makeStore()).acquire();
    const readers: Promise<Lease>[] = [];
    for (const count of [1, 2]) {
      readers.push(lockOf(makeStore(clients[1])).acquire({ mode: "shared" }));
      await untilInLine(count);
    }
    expect(await lease.demote()).toBe("demoted");
    const demotedAt = performance.now();
    const entered = await Promise.all(readers);
    expect(performance.now() - demotedAt).toBeLessThan(2_000);
    for (const each of [...entered, lease]) await each.release();
  });

  it("lets no reader pass a writer that came before it when the writer inside is demoted", async () => {
    const lease = await lockOf(makeStore()).acquire();
    const writer = lockOf(makeStore(clients[1])).acquire();
    await untilInLine(1);
    let isInside = false;
    const reader = lockOf(makeStore(clients[1])).acquire({ mode: "shared" });
    reader.then(() => {
      isInside = true;
    });
    await untilInLine(2);
    await lease.demote();
    await pause(100);
    expect(isInside).toBe(false);
    await lease.release();
    await (await writer).release();
    await (await reader).release();
  });

  it("wakes the next in line when the lock is released by force", async () => {
    await lockOf(makeStore()).acquire();
    const waiting = lockOf(makeStore(clients[1])).acquire();
    await untilInLine(1);
    expect(await makeStore().forceRelease({ key })).toBe("released");
    const releasedAt = performance.now();
    await (await waiting).release();
    expect(performance.now() - releasedAt).toBeLessThan(2_000);
  });

  it("wakes the next in line when a grant that nobody was told of is taken back", async () => {
    const proxy = await startTcpProxy({ target: server });
    const client = await connect(`redis://${proxy.host}:${proxy.port}`);
    const store = makeStore(client, { commandTimeoutMs: 300 });
    await (await lockOf(store).tryAcquire())?.release(); // Now the server knows the script.
    proxy.hold("replies");
    const failed = failure(store.acquire({ key, owner: newOwner(), ttlMs: 60_000 }));
    await until(async () => (await admin.exists(key)) === 1);
    proxy.hold("both"); // What takes it back does not arrive yet.
    const waiting = lockOf(makeStore(clients[1])).acquire();
    await untilInLine(1);
    await failed;
    proxy.resume();
    const resumedAt = performance.now();
    await (await waiting).release();
    expect(performance.now() - resumedAt).toBeLessThan(5_000);
    client.disconnect();
    await proxy.close();
  });
});
