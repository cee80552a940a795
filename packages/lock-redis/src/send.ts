import type { RedisClient } from "./redis-client.ts";
import type { ScriptCall } from "./script.ts";

/**
 * Runs a script and returns the raw reply. Everything this package sends to Redis leaves through here.
 *
 * By digest first; a server that does not know it (fresh, failed over, or after SCRIPT FLUSH) gets the source on the same
 * route. SCRIPT LOAD is never used: the server could lose the script again before the next call.
 */
export async function send(client: RedisClient, call: ScriptCall): Promise<unknown> {
  const { script, keys, args } = call;
  try {
    return await client.evalsha(script.sha1, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT")) || call.abandoned) throw error;
  }
  return await client.eval(script.source, keys.length, ...keys, ...args);
}
