import { LockFactory } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis, startTcpProxy } from "@ota/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisStore, type RedisStoreOptions } from "../src/index.ts";
import { connect, failure, newKey, newOwner, pause, until } from "./support.ts";

describe.skipIf(!hasRedis)("waiting on RedisStore", () => {
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

  function makeStore(options: RedisStoreOptions = {}, client: Redis = clients[0]): RedisStore {
    const store = new RedisStore(client, options);
    stores.push(store);
    return store;
  }

  /** Locks of one process each. Retries are far apart, so that what is fast is fast by being woken. */
  function lockOf(store: RedisStore, options = {}) {
    return new LockFactory(store, {
      ttlMs: 30_000,
      waitTimeoutMs: 20_000,
      retryDelayMs: 10_000,
      ...options,
    }).createLock(key);
  }

  const inLine = () => admin.zrange(`{${key}}:queue`, 0, "-1");

  /** Waits until so many stores are in line and, if they listen, are sure to hear. */
  async function untilInLine(count: number, kind = "+"): Promise<void> {
    await until(async () => (await inLine()).filter((name) => name.startsWith(kind)).length === count);
  }

  it("wakes a waiter of another process by the release, long before it would ask by itself", async () => {
    const lease = await lockOf(makeStore()).acquire();
    const waiting = lockOf(makeStore({}, clients[1])).acquire();
    await untilInLine(1);
    await lease.release();
    const releasedAt = performance.now();
    await (await waiting).release();
    expect(performance.now() - releasedAt).toBeLessThan(2_000);
    expect(await inLine()).toEqual([]);
  });

  it("serves the process that has waited longest first, whichever asks last", async () => {
    const lease = await lockOf(makeStore()).acquire();
    const served: string[] = [];
    const waits: Promise<void>[] = [];
    for (const [index, name] of ["first", "second", "third"].entries()) {
      const wait = async () => {
        const turn = await lockOf(makeStore({}, clients[1])).acquire();
        served.push(name);
        await turn.release();
      };
      waits.push(wait());
      await untilInLine(index + 1);
    }
    await lease.release();
    await Promise.all(waits);
    expect(served).toEqual(["first", "second", "third"]);
  });

  it("serves waiters of one process in the order in which they came, and asks Redis twice for each", async () => {
    const lock = lockOf(makeStore());
    const lease = await lock.acquire();
    const served: number[] = [];
    const waits = Array.from({ length: 20 }, async (_, index) => {
      const turn = await lock.acquire();
      served.push(index);
      await turn.release();
    });
    await admin.config("RESETSTAT");
    await lease.release();
    await Promise.all(waits);
    expect(served).toEqual([...Array(20).keys()]);
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await admin.info("commandstats")) ?? [];
    expect(Number(calls)).toBeLessThanOrEqual(44);
  });

  it("asks for the next waiter of the process right behind the release, while no other process waits", async () => {
    const proxy = await startTcpProxy({ target: server });
    const client = await connect(`redis://${proxy.host}:${proxy.port}`);
    const lock = lockOf(makeStore({ commandTimeoutMs: 10_000 }, client));
    const lease = await lock.acquire();
    const waits = Array.from({ length: 3 }, () => lock.acquire());
    await lease.release();
    const first = await (waits[0] as (typeof waits)[0]);
    const owners = async () => (await admin.zrange(key, 0, "-1")).filter((member) => member !== "__write__");
    const [owner] = await owners();
    proxy.hold("replies");
    const released = first.release();
    // The next one holds the lock before the release is answered.
    await until(async () => (await owners()).some((other) => other !== owner));
    proxy.resume();
    expect(await released).toBe("released");
    for (const turn of waits.slice(1)) await (await turn).release();
    client.disconnect();
    await proxy.close();
  });

  it("does not let a newcomer pass those in line, while tryAcquire and a PHP peer find a released lock free", async () => {
    const holder = makeStore();
    const lease = await lockOf(holder).acquire();
    const waiter = makeStore({ subscriber: false }, clients[1]); // It does not come at once when it is its turn.
    const waiting = lockOf(waiter, { retryDelayMs: 1_000 }).acquire();
    await untilInLine(1, "-");
    await lease.release();

    const newcomer = makeStore().openPlace({ key, onTurn: () => {} });
    const request = { key, owner: newOwner(), ttlMs: 10_000, waitedMs: 0 };
    expect((await newcomer.acquire(request)).outcome).toBe("contended");
    await newcomer.leave();
    expect(await admin.exists(key)).toBe(0);
    const passing = await lockOf(makeStore()).tryAcquire();
    expect(passing).toBeDefined();
    await passing?.release();
    await (await waiting).release();
  });

  it("puts nothing into the lock's own key for those who wait", async () => {
    const lease = await lockOf(makeStore()).acquire();
    const waiting = lockOf(makeStore({}, clients[1])).acquire();
    await untilInLine(1);
    expect(await admin.zcard(key)).toBe(2);
    await lease.release();
    await (await waiting).release();
    expect(await admin.exists(key)).toBe(0);
  });

  it("leaves neither a lease nor a place in line behind a waiter that aborts or times out, at whatever moment", async () => {
    const proxy = await startTcpProxy({ target: server });
    proxy.delay(3); // Most requests are on their way when their waiter gives up.
    const client = await connect(`redis://${proxy.host}:${proxy.port}`);
    const lease = await lockOf(makeStore()).acquire();
    const lock = lockOf(makeStore({}, client), { retryDelayMs: 2 });
    const waits = Array.from({ length: 60 }, async (_, index) => {
      await pause(index);
      const signal = AbortSignal.timeout(1 + Math.floor(Math.random() * 20));
      const limit = index % 2 === 0 ? { signal } : { waitTimeoutMs: 1 + Math.floor(Math.random() * 20) };
      return lock.acquire(limit).then(
        (turn) => turn.release(),
        () => "gave up",
      );
    });
    await pause(30);
    await lease.release();
    await Promise.all(waits);
    await until(async () => (await inLine()).length === 0 && (await admin.exists(key)) === 0);
    expect(await lock.tryAcquire()).toBeDefined();
    client.disconnect();
    await proxy.close();
  });

  it("notices by itself that a peer without a line freed the key: an older version, or PHP", async () => {
    const peer = newOwner();
    await admin.zadd(key, Date.now() + 60_000, peer, Date.now() + 60_000, "__write__");
    const waiting = lockOf(makeStore(), { retryDelayMs: 100 }).acquire();
    await untilInLine(1);
    await admin.zrem(key, peer, "__write__");
    await (await waiting).release();
  });

  it("carries on when Redis is restarted without its data, and is woken by messages again", async () => {
    const restarted = await startRedis();
    const [client, observer] = [new Redis(restarted.url), new Redis(restarted.url)];
    for (const each of [client, observer]) each.on("error", () => {});
    const [one, two] = [makeStore({}, client), makeStore({}, client)];
    const heard = async () => (await observer.zrange(`{${key}}:queue`, 0, "-1")).some((name) => name.startsWith("+"));
    await lockOf(one).acquire();
    const options = { retryDelayMs: 500 };
    const waiting = lockOf(two, options).acquire();
    await until(heard);
    await restarted.restart();
    const lease = await waiting;
    const next = lockOf(one, options).acquire();
    await until(heard);
    await lease.release();
    await (await next).release();
    for (const each of [client, observer]) each.disconnect();
    await restarted.stop();
  });

  it("notices by itself that a lease lapsed, as nobody says so", async () => {
    await makeStore().acquire({ key, owner: newOwner(), ttlMs: 300 });
    const startedAt = performance.now();
    const lease = await lockOf(makeStore({}, clients[1])).acquire();
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await lease.release();
  });

  it("lets readers in together when a writer leaves, and a writer behind them after the last", async () => {
    const lease = await lockOf(makeStore()).acquire();
    const served: string[] = [];
    const leases: Awaited<ReturnType<ReturnType<typeof lockOf>["acquire"]>>[] = [];
    const waits: Promise<void>[] = [];
    for (const [index, mode] of (["shared", "shared", "exclusive", "shared"] as const).entries()) {
      const wait = async () => {
        leases.push(await lockOf(makeStore({}, clients[1])).acquire({ mode }));
        served.push(`${index}:${mode}`);
      };
      waits.push(wait());
      await untilInLine(index + 1);
    }
    await lease.release();
    await until(() => served.length === 2);
    await pause(50);
    expect([...served].sort()).toEqual(["0:shared", "1:shared"]);
    await Promise.all(leases.splice(0).map((reader) => reader.release()));
    await until(() => served.length === 3);
    expect(served[2]).toBe("2:exclusive");
    await leases.pop()?.release();
    await Promise.all(waits);
    await leases.pop()?.release();
  });

  describe.each(["any", "node-only"] as const)("with peers: %s", (peers) => {
    it("goes on by polling without a subscriber", async () => {
      const lease = await lockOf(makeStore({ peers })).acquire();
      const waiting = lockOf(makeStore({ peers, subscriber: false }, clients[1]), { retryDelayMs: 40 }).acquire();
      await untilInLine(1, "-");
      await lease.release();
      await (await waiting).release();
      expect(await inLine()).toEqual([]);
    });

    it("survives SCRIPT FLUSH and the loss of the subscriber's connection, and subscribes again", async () => {
      const lease = await lockOf(makeStore({ peers })).acquire();
      const waiting = lockOf(makeStore({ peers }, clients[1]), { retryDelayMs: 40 }).acquire();
      await untilInLine(1);
      await admin.call("CLIENT", "KILL", "TYPE", "pubsub");
      await admin.script("FLUSH");
      await untilInLine(1, "-");
      await untilInLine(1);
      await lease.release();
      await (await waiting).release();
    });
  });

  it("passes a lock on within a process in one request for each turn with peers: node-only", async () => {
    const lock = lockOf(makeStore({ peers: "node-only" }), { fencing: true });
    const lease = await lock.acquire();
    const tokens: bigint[] = [];
    const waits = Array.from({ length: 20 }, async () => {
      const turn = await lock.acquire();
      expect(await turn.isHeld()).toBe(true);
      tokens.push(turn.fencingToken as bigint);
      await turn.release();
    });
    await admin.config("RESETSTAT");
    await lease.release();
    await Promise.all(waits);
    expect(tokens).toEqual([...tokens].sort((one, other) => (one < other ? -1 : 1)));
    expect(new Set(tokens).size).toBe(20);
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await admin.info("commandstats")) ?? [];
    expect(Number(calls)).toBeLessThanOrEqual(46); // Of which 20 are isHeld.
    expect(await admin.exists(key)).toBe(0);
  });

  it("reserves a lock for the process whose turn it is with peers: node-only, for 250 ms at most", async () => {
    const lease = await lockOf(makeStore({ peers: "node-only" })).acquire();
    const place = makeStore({ peers: "node-only", subscriber: false }, clients[1]).openPlace({ key, onTurn: () => {} });
    const request = { key, owner: newOwner(), ttlMs: 10_000, waitedMs: 10_000 };
    expect((await place.acquire(request)).outcome).toBe("contended");
    // Only a store with a waiter of its own passes the lock on in the request that releases it.
    const holder = stores.at(-2) as RedisStore;
    const local = lockOf(holder).acquire({ waitTimeoutMs: 5_000 });
    for (let turn = 0; turn < 9; turn++)
      lockOf(holder)
        .acquire()
        .then(
          (next) => next.release(),
          () => {},
        );
    await lease.release();
    await (await local).release();
    await until(async () => (await admin.zrange(key, 0, "-1")).some((member) => member.startsWith("-")));
    expect(await admin.pttl(key)).toBeLessThanOrEqual(250);
    expect(await lockOf(makeStore()).tryAcquire()).toBeUndefined();
    expect((await place.acquire(request)).outcome).toBe("granted");
    expect(await admin.zcard(key)).toBe(2);
    await makeStore().release(request);
  });

  it("ends all waits of a process at once when Redis fails, and none as contention", async () => {
    const proxy = await startTcpProxy({ target: server });
    const client = await connect(`redis://${proxy.host}:${proxy.port}`);
    const store = makeStore({ commandTimeoutMs: 300 }, client);
    await makeStore().acquire({ key, owner: newOwner(), ttlMs: 60_000 });
    const lock = lockOf(store, { retryDelayMs: 20 });
    const startedAt = performance.now();
    const waits = Array.from({ length: 10 }, () => failure(lock.acquire()));
    await until(async () => (await inLine()).length === 1);
    proxy.hold();
    const errors = await Promise.all(waits);
    expect(errors.map((error) => (error as { code?: string }).code)).toEqual(Array(10).fill("LOCK_STORE_FAULT"));
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    proxy.resume();
    client.disconnect();
    await proxy.close();
  });

  it("carries the prefixes in its channels and companions", async () => {
    const client = await connect(server.url, { keyPrefix: "app:" });
    const lease = await lockOf(makeStore({ keyPrefix: "ota:" }, client)).acquire();
    const waiting = lockOf(makeStore({ keyPrefix: "ota:" }, client)).acquire();
    await until(async () =>
      (await admin.zrange(`app:ota:{app:ota:${key}}:queue`, 0, "-1")).some((n) => n.startsWith("+")),
    );
    const channels = (await admin.pubsub("CHANNELS", "app:ota:*")) as string[];
    expect(channels.length).toBeGreaterThan(0);
    await lease.release();
    await (await waiting).release();
    client.disconnect();
  });

  it("leaves a given subscriber without listeners or channels of its own after close", async () => {
    const subscriber = new Redis(server.url);
    const countListeners = () => subscriber.eventNames().reduce((sum, name) => sum + subscriber.listenerCount(name), 0);
    await until(() => subscriber.status === "ready");
    const before = countListeners();
    const lease = await lockOf(makeStore()).acquire();
    const store = makeStore({ subscriber }, clients[1]);
    const waiting = lockOf(store).acquire();
    await untilInLine(1);
    await lease.release();
    await (await waiting).release();
    await store.close();
    expect(countListeners()).toBe(before);
    await until(
      async () => ((await admin.pubsub("NUMSUB", "x")) as unknown[]).length > 0 && subscriber.mode === "normal",
    );
    subscriber.disconnect();
  });
});
