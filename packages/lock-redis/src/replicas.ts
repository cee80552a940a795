import type { PipelineResult, RedisClient } from "./redis-client.ts";
import type { ReplicaAcknowledgement } from "./replica-options.ts";
import type { ScriptCall } from "./script.ts";

/** The server has granted, but too few of its replicas are known to have received that. */
export class NotAcknowledged extends Error {
  override readonly name = "NotAcknowledged";
}

/**
 * Runs a script, and where it has granted, waits until so many replicas have received all that this connection has
 * written. Gives the script's raw reply.
 *
 * The script and WAIT leave as one pipeline. WAIT tells about writes of its own connection only, and so it must not get
 * onto another one: a pipeline that a lost connection has cut in two is not sent again, and on a Cluster both go to the
 * owner of the key's slot.
 *
 * @throws NotAcknowledged when too few have.
 */
export async function sendAcknowledged(
  client: RedisClient,
  call: ScriptCall,
  { replicas, send }: { readonly replicas: ReplicaAcknowledgement; readonly send: () => Promise<unknown> },
): Promise<unknown> {
  await new Promise((resolve) => process.nextTick(resolve)); // Behind what was sent before in this tick.
  let [ran, waited] = await together(client, call, replicas);
  if (isError(ran, /^NOSCRIPT/) && !call.abandoned) [ran, waited] = await together(client, call, replicas, "eval");
  if (client.isCluster === true && isError(ran, REDIRECTED) && !call.abandoned) {
    // By itself it is redirected, and the client learns who the owner is. A second grant to the same owner is harmless.
    const reply = await send();
    if (call.abandoned) return reply; // To nobody who would use it, but to those who take a late grant back.
    [ran, waited] = await together(client, call, replicas);
  }
  const [error, reply] = ran;
  if (error) throw error;
  if (isGrant(reply)) check(waited, client, replicas);
  return reply;
}

type Results = readonly [ran: PipelineResult, waited: PipelineResult];

async function together(
  client: RedisClient,
  { script, keys, args }: ScriptCall,
  { count, timeoutMs }: ReplicaAcknowledgement,
  name: "evalsha" | "eval" = "evalsha",
): Promise<Results> {
  const pipeline = client.pipeline?.();
  if (pipeline?.wait === undefined) throw new Error("the client has no pipeline with WAIT, which replicas needs");
  pipeline[name](name === "eval" ? script.source : script.sha1, keys.length, ...keys, ...args);
  pipeline.wait(count, timeoutMs);
  const [ran = NO_REPLY, waited = NO_REPLY] = (await pipeline.exec()) ?? [];
  return [ran, waited];
}

const NO_REPLY: PipelineResult = [new Error("the client gave no reply to a pipelined command")];

const REDIRECTED = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) /;

function isError([error]: PipelineResult, pattern: RegExp): boolean {
  return error instanceof Error && pattern.test(error.message);
}

/** The scripts that grant answer 1, or an array that begins with it. */
function isGrant(reply: unknown): boolean {
  return Number(Array.isArray(reply) ? reply[0] : reply) === 1;
}

function check(
  [error, reply]: PipelineResult,
  client: RedisClient,
  { count, timeoutMs }: ReplicaAcknowledgement,
): void {
  if (isError([error], /unknown command|unsupported command|not allowed/i)) {
    warnOnce(client);
    return;
  }
  if (error) throw new NotAcknowledged(`WAIT failed: ${error instanceof Error ? error.message : String(error)}`);
  if (Number(reply) >= count) return;
  throw new NotAcknowledged(
    `${Number(reply)} of ${count} replica(s) confirmed within ${timeoutMs} ms that they received the grant`,
  );
}

const warned = new WeakSet<RedisClient>();

/** The locks go on as they do without replicas, which somebody should know. */
function warnOnce(client: RedisClient): void {
  if (warned.has(client)) return;
  warned.add(client);
  process.emitWarning("The Redis server does not know WAIT: grants of locks are not confirmed by replicas.", {
    code: "LOCK_WAIT_UNSUPPORTED",
  });
}
