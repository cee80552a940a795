import { joined } from "./joint-call.ts";
import type { PipelineResult, RedisClient } from "./redis-client.ts";
import { slotOf } from "./slot.ts";
import type { ScriptCommand, WaitingCommand } from "./waiting-command.ts";

const waitingByClient = new WeakMap<RedisClient, WaitingCommand[]>();

/**
 * Sends a command together with all others that the same client is given in this tick of the event loop: one write to
 * the socket instead of one each, which is most of what a command costs. The order of the commands is kept. Outside of a
 * Cluster, those that many locks want in one moment even are one command ({@link joined}).
 *
 * What is alone in its tick is sent as it is, so that nothing is paid for where nothing can be gained. A client that
 * batches by itself (`enableAutoPipelining`), or has no `pipeline`, is left to its own ways.
 */
export function sendAtEndOfTick(client: RedisClient, command: WaitingCommand): void {
  if (client.pipeline === undefined || client.options?.enableAutoPipelining === true) {
    sendAlone(client, command);
    return;
  }
  const waiting = waitingByClient.get(client);
  if (waiting !== undefined) {
    waiting.push(command);
    return;
  }
  waitingByClient.set(client, [command]);
  // The queue of next ticks is emptied when all promises that a read of the socket has settled have run on: whoever was
  // answered by that read has then sent what follows.
  process.nextTick(flush, client);
}

function flush(client: RedisClient): void {
  const waiting = waitingByClient.get(client) ?? [];
  waitingByClient.delete(client);
  if (client.isCluster === true) {
    for (const group of bySlotOwner(client, waiting)) sendGroup(client, group);
  } else
    sendGroup(
      client,
      joined(client, waiting, (part) => sendAlone(client, part)),
    );
}

function sendGroup(client: RedisClient, group: readonly WaitingCommand[]): void {
  const [only, ...more] = group;
  if (more.length > 0) void sendTogether(client, group);
  else if (only !== undefined) sendAlone(client, only);
}

async function sendTogether(client: RedisClient, group: readonly WaitingCommand[]): Promise<void> {
  const results = await execute(client, group);
  group.forEach((entry, index) => {
    const [error, reply] = results[index] ?? [new Error("the client gave no reply to a pipelined command")];
    if (!error) entry.resolve(reply);
    // A pipeline follows a redirection only when all of its commands meet the same; a command alone always does.
    else if (client.isCluster === true && error instanceof Error && REDIRECTED.test(error.message)) {
      sendAlone(client, entry);
    } else entry.reject(error);
  });
}

async function execute(client: RedisClient, group: readonly ScriptCommand[]): Promise<readonly PipelineResult[]> {
  try {
    const pipeline = client.pipeline?.();
    for (const command of group) {
      pipeline?.[command.name](textOf(command), command.keys.length, ...command.keys, ...command.args);
    }
    return (await pipeline?.exec()) ?? [];
  } catch (error) {
    return group.map(() => [error]);
  }
}

/** The server's redirections, and the client's own word for slots that have moved apart while it looked. */
const REDIRECTED = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) |^All keys in the pipeline should belong to the same slots/;

function sendAlone(client: RedisClient, command: WaitingCommand): void {
  const { name, keys, args, resolve, reject } = command;
  try {
    client[name](textOf(command), keys.length, ...keys, ...args).then(resolve, reject);
  } catch (error) {
    reject(error);
  }
}

/** What the server knows the script by, or all of it. */
function textOf({ name, script }: ScriptCommand): string {
  return name === "eval" ? script.source : script.sha1;
}

/** One pipeline may only hold keys of one node. Where the nodes are not known, of one slot. */
function bySlotOwner(client: RedisClient, waiting: readonly WaitingCommand[]): Iterable<readonly WaitingCommand[]> {
  const prefix = client.options?.keyPrefix ?? "";
  return Map.groupBy(waiting, ({ keys: [key] }) => {
    const slot = slotOf(prefix + key);
    return client.slots?.[slot]?.join() ?? slot;
  }).values();
}
