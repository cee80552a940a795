import { launchRedis, type RedisServer, startRedis } from "./redis-server.ts";
import { until } from "./until.ts";

/** How {@link startRedisSentinel} starts the servers. */
export interface StartRedisSentinelOptions {
  /**
   * How many sentinels watch; more than half of them have to agree.
   * @default 3
   */
  readonly sentinels?: number;
}

/** A master with one replica, watched by sentinels: the replica is promoted about 3 s after the master has died. */
export interface RedisSentinel extends AsyncDisposable {
  /** The name by which clients ask the sentinels for the master. */
  readonly name: string;
  /** The server that was the master at the start. */
  readonly master: RedisServer;
  /** The server that was the replica at the start. */
  readonly replica: RedisServer;
  readonly sentinels: readonly RedisServer[];
  /** Resolves when the sentinels name this server as the master, and it takes writes. */
  untilMasterIs(server: RedisServer): Promise<void>;
  stop(): Promise<void>;
}

const NAME = "primary";
/** A master that is silent for so long counts as dead; generous, for machines under load. */
const DOWN_AFTER_MS = "1500";
const FAILOVER_TIMEOUT_MS = "3000";

/** Starts a master, its replica and the sentinels, and waits until all of them know each other: about 3 s. */
export async function startRedisSentinel(options: StartRedisSentinelOptions = {}): Promise<RedisSentinel> {
  const { sentinels: count = 3 } = options;
  const master = await startRedis();
  const servers = [master];
  const stop = async () => void (await Promise.all(servers.map((server) => server.stop())));
  try {
    const replica = await startRedis({ args: ["--replicaof", `${master.host} ${master.port}`] });
    servers.push(replica);
    await until("the replica is in sync", async () =>
      (await replica.cli("INFO", "replication")).includes("master_link_status:up"),
    );
    const sentinels = await Promise.all(Array.from({ length: count }, () => launchRedis({ isSentinel: true })));
    servers.push(...sentinels);
    const quorum = String(Math.floor(count / 2) + 1);
    for (const sentinel of sentinels) {
      await sentinel.cli("SENTINEL", "MONITOR", NAME, master.host, String(master.port), quorum);
      const settings = ["down-after-milliseconds", DOWN_AFTER_MS, "failover-timeout", FAILOVER_TIMEOUT_MS];
      await sentinel.cli("SENTINEL", "SET", NAME, ...settings);
    }
    const all = `status=ok,address=${master.host}:${master.port},slaves=1,sentinels=${count}`;
    for (const sentinel of sentinels) {
      await until("the sentinels know each other", async () => (await sentinel.cli("INFO", "sentinel")).includes(all));
    }
    return {
      name: NAME,
      master,
      replica,
      sentinels,
      async untilMasterIs(server) {
        await until("the server takes writes as the master", async () => {
          for (const sentinel of sentinels) {
            const address = await sentinel.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME);
            if (address !== `${server.host}\n${server.port}`) return false;
          }
          return (await server.cli("ROLE")).startsWith("master");
        });
      },
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
