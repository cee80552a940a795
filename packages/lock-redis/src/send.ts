import { goByClientClock, goesByClientClock, mayRefuseTime, withClientTime } from "./client-clock.ts";
import type { RedisClient } from "./redis-client.ts";
import { sendAcknowledged } from "./replicas.ts";
import type { ScriptCall } from "./script.ts";
import { sendAtEndOfTick } from "./tick-batch.ts";

/**
 * Runs a script and returns the raw reply. Everything this package sends to Redis leaves through here, together with what
 * else leaves in the same tick. A server that refuses to tell scripts the time is sent this process's.
 */
export async function send(client: RedisClient, call: ScriptCall): Promise<unknown> {
  if (goesByClientClock(client)) return run(client, withClientTime(call));
  try {
    return await run(client, call);
  } catch (error) {
    if (!mayRefuseTime(error) || call.abandoned) throw error;
  }
  const reply = await run(client, withClientTime(call));
  goByClientClock(client);
  return reply;
}

/**
 * By digest first; a server that does not know it (fresh, failed over, or after SCRIPT FLUSH) gets the source on the same
 * route. SCRIPT LOAD is never used: the server could lose the script again before the next call.
 */
async function run(client: RedisClient, call: ScriptCall): Promise<unknown> {
  const { script, keys, args, replicas } = call;
  if (replicas !== undefined) {
    const alone: ScriptCall = { script, keys, args, abandoned: false };
    return sendAcknowledged(client, call, { replicas, send: () => run(client, alone) });
  }
  try {
    return await sendAtEndOfTick(client, { name: "evalsha", script: script.sha1, keys, args });
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT")) || call.abandoned) throw error;
  }
  return await sendAtEndOfTick(client, { name: "eval", script: script.source, keys, args });
}
