import { type RedisServer, startRedis } from "./redis-server.ts";
import { until } from "./until.ts";

/** How {@link startRedisCluster} starts the nodes. */
export interface StartRedisClusterOptions {
  /**
   * How many masters share the slots.
   * @default 3
   */
  readonly masters?: number;
  /**
   * How many replicas each master has.
   * @default 0
   */
  readonly replicasPerMaster?: number;
}

/** A private Redis Cluster on 127.0.0.1. A master that is killed is replaced by its replica within about 5 s. */
export interface RedisCluster extends AsyncDisposable {
  readonly masters: readonly RedisServer[];
  readonly replicas: readonly RedisServer[];
  /** What a Cluster client starts from. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** The master that owned the key's slot when the cluster was started, the slot, and a master that does not own it. */
  locate(key: string): Promise<{ readonly slot: number; readonly owner: RedisServer; readonly other: RedisServer }>;
  stop(): Promise<void>;
}

const SLOTS = 16_384;
/** A node that is silent for so long counts as failed; generous, for machines under load. */
const NODE_TIMEOUT_MS = 2_000;

/** Starts a Redis Cluster and waits until every node serves it: about a second with three masters. */
export async function startRedisCluster(options: StartRedisClusterOptions = {}): Promise<RedisCluster> {
  const { masters: masterCount = 3, replicasPerMaster = 0 } = options;
  const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", String(NODE_TIMEOUT_MS)];
  const start = () =>
    startRedis({ args: [...args, "--cluster-announce-ip", "127.0.0.1", "--repl-diskless-sync-delay", "0"] });
  const nodes = await Promise.all(Array.from({ length: masterCount * (1 + replicasPerMaster) }, start));
  const masters = nodes.slice(0, masterCount);
  const replicas = nodes.slice(masterCount);
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())));
  const bound = (index: number) => Math.floor((SLOTS * index) / masterCount);

  try {
    await Promise.all(
      masters.map(async (node, index) => {
        await node.cli("CLUSTER", "SET-CONFIG-EPOCH", String(index + 1));
        await node.cli("CLUSTER", "ADDSLOTSRANGE", String(bound(index)), String(bound(index + 1) - 1));
      }),
    );
    for (const node of nodes.slice(1)) await nodes[0]?.cli("CLUSTER", "MEET", node.host, String(node.port));
    await Promise.all(nodes.map((node) => until("all nodes know each other", () => knowsAll(node, nodes.length))));
    await Promise.all(
      replicas.map(async (replica, index) => {
        const master = masters[index % masterCount] as RedisServer;
        await replica.cli("CLUSTER", "REPLICATE", await master.cli("CLUSTER", "MYID"));
        // Only a replica that its master counts as online is written to, and confirms by WAIT.
        const isOnline = async () => /state=online,offset=\d+,lag=[01]\b/.test(await master.cli("INFO", "replication"));
        await until("a replica is in sync", isOnline);
      }),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    masters,
    replicas,
    addresses: masters.map(({ host, port }) => ({ host, port })),
    async locate(key) {
      const slot = Number(await masters[0]?.cli("CLUSTER", "KEYSLOT", key));
      const index = masters.findIndex((_, at) => slot < bound(at + 1));
      return {
        slot,
        owner: masters[index] as RedisServer,
        other: masters[(index + 1) % masterCount] as RedisServer,
      };
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function knowsAll(node: RedisServer, count: number): Promise<boolean> {
  const info = await node.cli("CLUSTER", "INFO");
  return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${count}\r`);
}
