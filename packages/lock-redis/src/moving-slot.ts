import { setTimeout as sleep } from "node:timers/promises";
import type { OneKeyCall } from "./asked.ts";
import type { RedisClient } from "./redis-client.ts";
import type { ScriptCall } from "./script.ts";
import { send } from "./send.ts";

const AGAIN_AFTER_MS = 20;

/** What a Cluster client says when it has given up following a slot that is being moved. All of them are refusals. */
const MOVING = /^(?:TRYAGAIN|ASK|MOVED) |^Too many Cluster redirections\. .*(?:TRYAGAIN|ASK|MOVED|NOSCRIPT) /;

/**
 * Sends a call to a Cluster, and while its slot is being moved to another master again, until that is done or the call is
 * abandoned. Clients do so as well, but only a number of times, and not for what leaves together with WAIT.
 *
 * `instead` is what to send in its place from the second time on: scripts on one key are carried out all the while. By then
 * the first call has been refused, and will not be carried out any more.
 */
export async function sendWhileMoving(client: RedisClient, call: ScriptCall, instead?: OneKeyCall): Promise<unknown> {
  let current = call;
  for (;;) {
    try {
      return await send(client, current);
    } catch (error) {
      if (!isMoving(error)) throw error;
      if (!call.abandoned) await sleep(AGAIN_AFTER_MS);
      if (call.abandoned) throw error;
    }
    if (instead !== undefined) current = withFateOf(call, instead);
  }
}

function isMoving(error: unknown): boolean {
  return error instanceof Error && MOVING.test(error.message);
}

function withFateOf(call: ScriptCall, instead: OneKeyCall): ScriptCall {
  return {
    ...instead,
    replicas: call.replicas,
    get abandoned() {
      return call.abandoned;
    },
  };
}
