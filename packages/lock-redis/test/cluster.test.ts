import { readFileSync } from "node:fs";
import { type Lease, LockFactory, LockStoreError } from "@ota/lock-core";
import { hasRedis, type RedisCluster, type RedisServer, startRedisCluster } from "@ota/testkit";
import * as six from "ioredis";
import * as five from "ioredis-5";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { newKey, newOwner, pause, until } from "./support.ts";

const TTL_MS = 20_000;

describe.skipIf(!hasRedis)("RedisStore on a Cluster of three masters with replicas", () => {
  let cluster: RedisCluster;
  /** The user of the README, with what it says a Cluster and replicas need besides. May use keys behind `ota:` alone. */
  const asUser = { redisOptions: { username: "locks", password: "password" } };
  const clients: { disconnect(): void }[] = [];
  const stores: RedisStore[] = [];

  const newClient = (library: typeof six | typeof five = six, options = {}) => {
    const client = new (library.Cluster as typeof six.Cluster)([...cluster.addresses], options);
    client.on("error", () => {});
    clients.push(client);
    return client;
  };
  /** As the README recommends for moving slots. */
  const newStore = (library?: typeof six | typeof five, options = {}, clientOptions = {}) => {
    const store = new RedisStore(newClient(library, { retryDelayOnTryAgain: 20, ...clientOptions }), options);
    stores.push(store);
    return store;
  };
  const factoryOn = (store: RedisStore) =>
    new LockFactory(store, { ttlMs: TTL_MS, logger: { debug() {}, info() {}, warn() {}, error() {} } });

  beforeAll(async () => {
    cluster = await startRedisCluster({ replicasPerMaster: 1 });
    const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
    const [, rules = ""] = /^user locks (.*)$/m.exec(readme) ?? [];
    const [, besides = ""] = /A Cluster client also needs `([^`]+)`, and `replicas` needs/.exec(readme) ?? [];
    expect(besides).not.toBe("");
    for (const node of [...cluster.masters, ...cluster.replicas]) {
      const line = [...rules.split(" "), ...besides.split(" "), "+wait"];
      expect(await node.cli("ACL", "SETUSER", "locks", "reset", ...line)).toBe("OK");
    }
  });
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    for (const client of clients.splice(0)) client.disconnect();
  });
  afterAll(() => cluster.stop());

  describe.each([
    ["ioredis 5", five],
    ["ioredis 6", six],
  ] as const)("%s", (_name, library) => {
    it("every operation works on keys of all three masters, fenced and shared ones too", async () => {
      const [one, two] = [newStore(library), newStore(library, { keyPrefix: "" })];
      const owners = new Set<number>();
      for (const key of Array.from({ length: 12 }, newKey)) {
        owners.add((await cluster.locate(key)).owner.port);
        const lock = factoryOn(one).createLock(key, { fencing: true });
        const rival = factoryOn(two).createLock(key, { fencing: true });
        const lease = await lock.acquire();
        expect(await rival.tryAcquire()).toBeUndefined();
        expect(await lease.demote()).toBe("demoted");
        const reader = (await rival.tryAcquire({ mode: "shared" })) as Lease;
        expect(reader.fencingToken).toBe(lease.fencingToken);
        expect(await reader.promote()).toBe("contended");
        expect(await lease.release()).toBe("released");
        expect(await reader.promote()).toBe("promoted");
        expect(reader.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
        expect((await factoryOn(one).inspect(key)).mode).toBe("exclusive");
        expect(await reader.release()).toBe("released");
      }
      expect(owners.size).toBe(3);
    });

    it("a waiter is woken by the release: by a message, as it would not ask again for a minute", async () => {
      const key = newKey();
      const lease = await factoryOn(newStore(library)).createLock(key).acquire();
      const waiting = factoryOn(newStore(library)).createLock(key).acquire({ retryDelayMs: 60_000 });
      const { owner } = await cluster.locate(key);
      await until(async () => (await owner.cli("PUBSUB", "SHARDCHANNELS")).includes(key));
      await pause(100); // It asks once more when it hears.
      await lease.release();
      await (await waiting).release();
    });
  });

  it("the fence counter and the line lie beside their lock, also for keys with a hash tag", async () => {
    for (const key of [newKey(), `{tag-${newKey()}}:rest`]) {
      const options = { retryDelayMs: 20, fencing: true };
      const lease = await factoryOn(newStore()).createLock(key, options).acquire();
      const waiting = factoryOn(newStore()).createLock(key, options).acquire();
      const { owner } = await cluster.locate(key);
      const tag = /\{(.*)\}/.exec(key)?.[1];
      const companion = tag === undefined ? `{${key}}` : `{${tag}}:${key}`;
      const kept = async () => (await owner.cli("KEYS", `*${tag ?? key}*`)).split("\n").sort();
      await until(async () => (await kept()).length === 3);
      expect(await kept()).toEqual([key, `${companion}:fence`, `${companion}:queue`].sort());
      await lease.release();
      await (await waiting).release();
    }
  });

  it("a user with the ACL line of the README, and what it says a Cluster and replicas need besides, can do it all", async () => {
    const options = { keyPrefix: "ota:", commandTimeoutMs: 5_000, replicas: { count: 1 } };
    const [one, two] = [newStore(six, options, asUser), newStore(six, options, asUser)];
    const key = newKey();
    const lock = factoryOn(one).createLock(key, { fencing: true });
    const lease = await lock.acquire();
    const waiting = factoryOn(two).createLock(key, { fencing: true }).acquire({ retryDelayMs: 60_000 });
    const { owner } = await cluster.locate(`ota:${key}`);
    await until(async () => (await owner.cli("PUBSUB", "SHARDCHANNELS")).includes(key));
    await pause(100); // It asks once more when it hears.
    await lease.release();
    const second = await waiting;
    expect(await second.demote()).toBe("demoted");
    expect(await second.promote()).toBe("promoted");
    expect(await second.extend()).toBe("extended");
    expect((await factoryOn(one).inspect(key)).mode).toBe("exclusive");
    expect(await factoryOn(one).forceRelease(key)).toBe("released");
  });

  it("operations of one tick on many keys reach all masters", async () => {
    const store = newStore();
    const keys = Array.from({ length: 60 }, newKey);
    const answers = await Promise.all(keys.map((key) => store.acquire({ key, owner: newOwner(), ttlMs: TTL_MS })));
    expect(answers).toEqual(keys.map(() => ({ outcome: "granted" })));
  });

  it("a slot that moves in the middle of use gives no wrong answer and no error, keeps its leases, and grants meanwhile", async () => {
    const tag = newKey();
    const { slot, owner, other } = await cluster.locate(tag);
    const held = { key: `{${tag}}:held`, owner: newOwner() };
    const patient = { keyPrefix: "ota:", commandTimeoutMs: 15_000 }; // The slot is in motion for less than that.
    const confirmed = { ...patient, replicas: { count: 1, timeoutMs: 1_000 } };
    await newStore(six, patient, asUser).acquire({ ...held, ttlMs: 60_000 });
    const stale = newStore(six, confirmed, asUser);
    await stale.isHeld(held); // It knows where the slots are, before one moves.
    const inside = new Map<string, number>();
    const tokens = new Map<string, bigint>();
    const wrong: string[] = [];
    const errors: unknown[] = [];
    const grants = { plain: 0, fenced: 0 };
    let ending = false;

    async function work(store: RedisStore, kind: keyof typeof grants): Promise<void> {
      const locks = factoryOn(store);
      const fencing = kind === "fenced";
      for (let round = 0; !ending; round++) {
        const key = `{${tag}}:${kind}:${round % 4}`;
        try {
          const lease = await locks.createLock(key, { fencing }).acquire({ waitTimeoutMs: 25_000 });
          grants[kind] += 1;
          const holders = (inside.get(key) ?? 0) + 1;
          inside.set(key, holders);
          if (holders > 1) wrong.push(`${holders} holders of ${key}`);
          const token = lease.fencingToken ?? (tokens.get(key) ?? 0n) + 1n;
          if (token <= (tokens.get(key) ?? 0n)) wrong.push(`a token of ${key} went back`);
          tokens.set(key, token);
          await pause(1);
          inside.set(key, holders - 1);
          await lease.release();
        } catch (error) {
          errors.push(error);
          await pause(20);
        }
      }
    }
    const workers = Promise.all([
      ...[newStore(six, patient, asUser), newStore(five, patient, asUser)].map((store) => work(store, "plain")),
      ...[newStore(six, patient, asUser), newStore(six, patient, asUser), newStore(five, confirmed, asUser)].map(
        (store) => work(store, "fenced"),
      ),
    ]);
    const more = (kind: keyof typeof grants, count: number) => {
      const before = grants[kind];
      return until(() => grants[kind] > before + count);
    };
    await Promise.all([more("plain", 30), more("fenced", 30)]);
    // Fenced ones need two keys in one script, and wait until the slot has moved.
    await moveSlot(slot, { from: owner, to: other, whileOpen: () => more("plain", 4) });
    await Promise.all([more("plain", 30), more("fenced", 30)]);
    ending = true;
    await workers;

    expect(wrong).toEqual([]);
    expect(errors).toEqual([]);
    const fresh = { key: `{${tag}}:fresh`, owner: newOwner(), ttlMs: TTL_MS };
    expect(await stale.acquire(fresh)).toEqual({ outcome: "granted" });
    expect(await newStore(six, patient).isHeld(held)).toBe(true);
    expect(await newStore(six, patient).release(held)).toBe("released");
    expect(await other.cli("CLUSTER", "COUNTKEYSINSLOT", String(slot))).not.toBe("0");
  });

  it("a master that is killed is followed by its replica: until then errors, then the locks work again", async () => {
    const key = newKey();
    const { owner } = await cluster.locate(key);
    const store = newStore();
    const lease = { key, owner: newOwner() };
    await store.acquire({ ...lease, ttlMs: 60_000 });
    await owner.cli("WAIT", "1", "1000");
    await owner.kill();
    const errors: unknown[] = [];
    await until(async () => {
      const held = await store.isHeld(lease).catch((error: unknown) => void errors.push(error));
      if (held !== undefined) expect(held).toBe(true);
      return held === true;
    });
    expect(errors.length).toBeGreaterThan(0);
    for (const error of errors) expect(error).toBeInstanceOf(LockStoreError);
    expect(await store.acquire({ key, owner: newOwner(), ttlMs: TTL_MS })).toEqual({ outcome: "contended" });
    expect(await store.release(lease)).toBe("released");
    await owner.restart();
  });
});

/** How {@link moveSlot} moves. */
interface SlotMove {
  readonly from: RedisServer;
  readonly to: RedisServer;
  /** Awaited before the keys move, and again when all of them have. */
  readonly whileOpen: () => Promise<void>;
}

/** Moves a slot with its keys from one master to another, as redis-cli --cluster reshard does, but slowly. */
async function moveSlot(slot: number, { from, to, whileOpen }: SlotMove) {
  const [fromId, toId] = [await from.cli("CLUSTER", "MYID"), await to.cli("CLUSTER", "MYID")];
  const set = (node: RedisServer, ...state: string[]) => node.cli("CLUSTER", "SETSLOT", String(slot), ...state);
  expect(await set(to, "IMPORTING", fromId)).toBe("OK");
  expect(await set(from, "MIGRATING", toId)).toBe("OK");
  await whileOpen();
  for (;;) {
    const key = await from.cli("CLUSTER", "GETKEYSINSLOT", String(slot), "1");
    if (key === "") break;
    expect(await from.cli("MIGRATE", to.host, String(to.port), key, "0", "1000")).toMatch(/OK|NOKEY/);
    await pause(10);
  }
  await whileOpen();
  for (const node of [to, from]) expect(await set(node, "NODE", toId)).toBe("OK");
}
