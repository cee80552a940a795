import type { PipelineResult, RedisClient } from "./redis-client.ts";
import { slotOf } from "./slot.ts";

/** One EVALSHA or EVAL that waits for the end of the tick. */
export interface BatchedCommand {
  readonly name: "evalsha" | "eval";
  /** The script's digest or source. */
  readonly script: string;
  readonly keys: readonly [string, ...string[]];
  readonly args: readonly string[];
}

interface Waiting extends BatchedCommand {
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const waitingByClient = new WeakMap<RedisClient, Waiting[]>();

/**
 * Sends a command together with all others that the same client is given in this tick of the event loop: one write to
 * the socket instead of one each, which is most of what a command costs. The order of the commands is kept.
 *
 * What is alone in its tick is sent as it is, so that nothing is paid for where nothing can be gained. A client that
 * batches by itself (`enableAutoPipelining`), or has no `pipeline`, is left to its own ways.
 */
export function sendAtEndOfTick(client: RedisClient, command: BatchedCommand): Promise<unknown> {
  if (client.pipeline === undefined || client.options?.enableAutoPipelining === true) return sendAlone(client, command);
  return new Promise((resolve, reject) => {
    const entry: Waiting = { ...command, resolve, reject };
    const waiting = waitingByClient.get(client);
    if (waiting !== undefined) {
      waiting.push(entry);
      return;
    }
    waitingByClient.set(client, [entry]);
    // The queue of next ticks is emptied when all promises that a read of the socket has settled have run on: whoever
    // was answered by that read has then sent what follows.
    process.nextTick(flush, client);
  });
}

function flush(client: RedisClient): void {
  const waiting = waitingByClient.get(client) ?? [];
  waitingByClient.delete(client);
  for (const group of client.isCluster === true ? bySlotOwner(client, waiting) : [waiting]) {
    const [only, ...more] = group;
    if (more.length > 0) void sendTogether(client, group);
    else if (only !== undefined) sendAlone(client, only).then(only.resolve, only.reject);
  }
}

async function sendTogether(client: RedisClient, group: readonly Waiting[]): Promise<void> {
  const results = await execute(client, group);
  group.forEach((entry, index) => {
    const [error, reply] = results[index] ?? [new Error("the client gave no reply to a pipelined command")];
    if (!error) entry.resolve(reply);
    // A pipeline follows a redirection only when all of its commands meet the same; a command alone always does.
    else if (client.isCluster === true && error instanceof Error && REDIRECTED.test(error.message)) {
      sendAlone(client, entry).then(entry.resolve, entry.reject);
    } else entry.reject(error);
  });
}

async function execute(client: RedisClient, group: readonly Waiting[]): Promise<readonly PipelineResult[]> {
  try {
    const pipeline = client.pipeline?.();
    for (const { name, script, keys, args } of group) pipeline?.[name](script, keys.length, ...keys, ...args);
    return (await pipeline?.exec()) ?? [];
  } catch (error) {
    return group.map(() => [error]);
  }
}

/** The server's redirections, and the client's own word for slots that have moved apart while it looked. */
const REDIRECTED = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) |^All keys in the pipeline should belong to the same slots/;

async function sendAlone(client: RedisClient, { name, script, keys, args }: BatchedCommand): Promise<unknown> {
  return await client[name](script, keys.length, ...keys, ...args);
}

/** One pipeline may only hold keys of one node. Where the nodes are not known, of one slot. */
function bySlotOwner(client: RedisClient, waiting: readonly Waiting[]): Iterable<readonly Waiting[]> {
  const prefix = client.options?.keyPrefix ?? "";
  return Map.groupBy(waiting, ({ keys: [key] }) => {
    const slot = slotOf(prefix + key);
    return client.slots?.[slot]?.join() ?? slot;
  }).values();
}
