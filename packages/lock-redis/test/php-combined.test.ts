import { CombinedStore, LockFactory } from "@ota/lock-core";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { leaseFromPhpKey, phpKeyFromLease, RedisStore } from "../src/index.ts";
import { hasPhpLock, PhpPeer } from "./php-peer.ts";
import { connect, newKey, newOwner, pause, stored, until } from "./support.ts";

const GRANTED = { outcome: "granted" };
const CONTENDED = { outcome: "contended" };

describe.skipIf(!hasRedis || !hasPhpLock)(
  "CombinedStore and symfony/lock's CombinedStore over the same servers",
  () => {
    let servers: RedisServer[];
    let clients: Redis[];
    let store: CombinedStore;
    let php: PhpPeer;
    let lock: string;
    let owned: { key: string; owner: string };

    beforeAll(async () => {
      servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
      clients = await Promise.all(servers.map((server) => connect(server.url)));
      store = new CombinedStore(clients.map((client) => new RedisStore(client)));
      php = new PhpPeer(...servers);
    });
    afterAll(async () => {
      await php.stop();
      for (const client of clients) client.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    });
    beforeEach(() => {
      lock = newKey();
      owned = { key: lock, owner: newOwner() };
    });

    const acquire = (mode: "exclusive" | "shared" = "exclusive", owner = owned.owner) =>
      store.acquire({ key: lock, owner, ttlMs: 10_000, mode });
    const members = (live = clients) =>
      Promise.all(live.map(async (client) => Object.keys((await stored(client, lock)).members).sort()));
    /** A combined store answers at a majority; the last server may be a moment behind. */
    const onAll = async (expected: readonly string[], live = clients) => {
      const wanted = JSON.stringify(live.map(() => [...expected].sort()));
      await until(async () => JSON.stringify(await members(live)) === wanted);
    };

    it("writers of both sides exclude each other, and both keep one token on all servers", async () => {
      expect(await acquire()).toEqual(GRANTED);
      await onAll([owned.owner, "__write__"]);
      expect(await php.ask({ do: "acquire", lock })).toBe(false);
      expect(await php.ask({ do: "acquireRead", lock })).toBe(false);
      await onAll([owned.owner, "__write__"]);
      expect(await store.release(owned)).toBe("released");
      await onAll([]);

      expect(await php.ask({ do: "acquire", lock })).toBe(true);
      const token = (await php.ask({ do: "token", lock })) as string;
      await onAll([token, "__write__"]);
      expect(await acquire()).toEqual(CONTENDED);
      await onAll([token, "__write__"]);
      await php.ask({ do: "release", lock });
      await onAll([]);
    });

    it("readers of both sides share the key, and either promotes once it is alone", async () => {
      expect(await php.ask({ do: "acquireRead", lock })).toBe(true);
      const token = (await php.ask({ do: "token", lock })) as string;
      expect(await acquire("shared")).toEqual(GRANTED);
      await onAll([token, owned.owner]);
      expect(await store.promote({ ...owned, ttlMs: 10_000 })).toEqual(CONTENDED);
      await onAll([token, owned.owner]);
      await php.ask({ do: "release", lock });
      expect(await store.promote({ ...owned, ttlMs: 10_000 })).toEqual({ outcome: "promoted" });
      await onAll([owned.owner, "__write__"]);
      expect(await store.demote({ ...owned, ttlMs: 10_000 })).toBe("demoted");
      await onAll([owned.owner]);

      expect(await php.ask({ do: "acquireRead", lock, as: "next" })).toBe(true);
      await store.release(owned);
      await onAll([(await php.ask({ do: "token", lock, as: "next" })) as string]);
      expect(await php.ask({ do: "acquire", lock, as: "next" })).toBe(true);
      expect(await acquire("shared")).toEqual(CONTENDED);
      await php.ask({ do: "release", lock, as: "next" });
    });

    it("a lock goes from PHP to Node and back as a Key", async () => {
      const locks = new LockFactory(store, { ttlMs: 20_000 });
      await php.ask({ do: "acquire", lock });
      const written = Buffer.from((await php.ask({ do: "write", lock, encoding: "native" })) as string, "base64");
      const lease = await locks.restore(leaseFromPhpKey(written.toString()));
      expect(await lease?.extend(30_000)).toBe("extended");
      const text = Buffer.from(phpKeyFromLease(lease?.toJSON() as never, { encoding: "native" })).toString("base64");
      await php.ask({ do: "read", lock, as: "back", encoding: "native", text });
      expect(await php.ask({ do: "isAcquired", lock, as: "back" })).toBe(true);
      await php.ask({ do: "refresh", lock, as: "back", ttl: 40 });
      await until(async () =>
        (await Promise.all(clients.map((client) => client.pttl(lock)))).every((ms) => ms > 35_000),
      );
      await php.ask({ do: "release", lock, as: "back" });
      await onAll([]);
    });

    it("both sides together lose no count", async () => {
      const counter = `${lock}:counter`;
      const times = 15;
      const [client] = clients as [Redis];
      const count = async () => {
        for (let done = 0; done < times; ) {
          const mine = newOwner();
          if ((await acquire("exclusive", mine)).outcome === "granted") {
            const value = Number(await client.get(counter));
            await client.set(counter, value + 1);
            await store.release({ key: lock, owner: mine });
            done += 1;
          } else await pause(2 + Math.random() * 6);
        }
      };
      await Promise.all([count(), php.ask({ do: "count", lock, counter, times })]);
      expect(await client.get(counter)).toBe(String(2 * times));
    });

    it("with one server down, both sides lock on and exclude each other by the two that are left", async () => {
      const [first, ...rest] = servers as [RedisServer, ...RedisServer[]];
      await first.kill();
      const live = clients.slice(1);
      expect(rest).toHaveLength(live.length);
      expect(await acquire()).toEqual(GRANTED);
      expect(await php.ask({ do: "acquire", lock })).toBe(false);
      await store.release(owned);
      await onAll([], live);
      expect(await php.ask({ do: "acquire", lock })).toBe(true);
      expect(await acquire()).toEqual(CONTENDED);
      await php.ask({ do: "release", lock });
      await onAll([], live);
      await first.restart();
    });
  },
);
