import { joined, MOST_PARTS } from "./joint-call.ts";
import type { PipelineResult, RedisClient } from "./redis-client.ts";
import { slotOf } from "./slot.ts";
import type { ScriptCommand, WaitingCommand } from "./waiting-command.ts";

/** As many as one joint call takes: what a write costs is nothing then beside what they cost. */
const FULL_BATCH = MOST_PARTS;

/** What each client is to be given at the end of the tick. */
const batches = new WeakMap<RedisClient, Batch>();

interface Batch {
  readonly client: RedisClient;
  commands: WaitingCommand[];
}

/**
 * Sends a command together with all others that the same client is given in this tick of the event loop: one write to
 * the socket for up to 64 of them instead of one each, which is most of what a command costs. The order of the commands is
 * kept. Outside of a Cluster, those that many locks want in one moment even are one command ({@link joined}).
 *
 * What is alone in its tick is sent as it is, so that nothing is paid for where nothing can be gained. A client that
 * batches by itself (`enableAutoPipelining`), or has no `pipeline`, is left to its own ways.
 */
export function sendAtEndOfTick(client: RedisClient, command: WaitingCommand): void {
  if (client.pipeline === undefined || client.options?.enableAutoPipelining === true) {
    sendAlone(client, command);
    return;
  }
  let batch = batches.get(client);
  if (batch === undefined) {
    batch = { client, commands: [] };
    batches.set(client, batch);
  }
  // The queue of next ticks is emptied when all promises that a read of the socket has settled have run on: whoever was
  // answered by that read has then sent what follows.
  if (batch.commands.length === 0) process.nextTick(flush, batch);
  batch.commands.push(command);
  // The server may begin with so many while the rest are put together.
  if (batch.commands.length === FULL_BATCH) flush(batch);
}

function flush(batch: Batch): void {
  const { client, commands } = batch;
  if (commands.length === 0) return;
  batch.commands = [];
  const sendPart = (part: WaitingCommand): void => sendAlone(client, part);
  const groups = client.isCluster === true ? bySlotOwner(client, commands) : [joined(client, commands, sendPart)];
  for (const group of groups) sendGroup(client, group);
}

function sendGroup(client: RedisClient, group: readonly WaitingCommand[]): void {
  const [first] = group;
  if (group.length > 1) void sendTogether(client, group);
  else if (first !== undefined) sendAlone(client, first);
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
      const { name, keys, args } = command;
      pipeline?.[name](textOf(command), keys.length, ...keys, ...args);
    }
    return (await pipeline?.exec()) ?? [];
  } catch (error) {
    return group.map(() => [error]);
  }
}

/** The server's redirections, and the client's own word for slots that have moved apart while it looked. */
const REDIRECTED = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) |^All keys in the pipeline should belong to the same slots/;

function sendAlone(client: RedisClient, command: WaitingCommand): void {
  const { name, keys, args } = command;
  try {
    client[name](textOf(command), keys.length, ...keys, ...args).then(
      (reply) => command.resolve(reply),
      (error: unknown) => command.reject(error),
    );
  } catch (error) {
    command.reject(error);
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
