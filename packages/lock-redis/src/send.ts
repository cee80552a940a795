import { goByClientClock, goesByClientClock, mayRefuseTime, withClientTime } from "./client-clock.ts";
import type { RedisClient } from "./redis-client.ts";
import { sendAcknowledged } from "./replicas.ts";
import type { ScriptCall } from "./script.ts";
import { sendAtEndOfTick } from "./tick-batch.ts";
import type { Answered } from "./waiting-command.ts";

/** Runs a script and returns the raw reply, as {@link deliver} does. */
export function send(client: RedisClient, call: ScriptCall): Promise<unknown> {
  return new Promise((resolve, reject) => deliver(client, call, { resolve, reject }));
}

/**
 * Runs a script and tells the raw reply. Everything this package sends to Redis leaves through here, together with what
 * else leaves in the same tick. A server that refuses to tell scripts the time is sent this process's.
 *
 * It tells rather than returns, since every operation of a lock comes by here: a promise for each step would cost more than
 * the step.
 */
export function deliver(client: RedisClient, call: ScriptCall, answered: Answered): void {
  if (goesByClientClock(client)) {
    run(client, withClientTime(call), answered);
    return;
  }
  const { resolve, reject } = answered;
  const failed = (error: unknown): void => {
    if (call.abandoned || !mayRefuseTime(error)) {
      reject(error);
      return;
    }
    const wentThrough = (reply: unknown): void => {
      goByClientClock(client);
      resolve(reply);
    };
    run(client, withClientTime(call), { resolve: wentThrough, reject });
  };
  run(client, call, { resolve, reject: failed });
}

/**
 * By digest first; a server that does not know it (fresh, failed over, or after SCRIPT FLUSH) gets the source on the same
 * route. SCRIPT LOAD is never used: the server could lose the script again before the next call.
 */
function run(client: RedisClient, call: ScriptCall, { resolve, reject }: Answered): void {
  const { script, keys, args, replicas } = call;
  if (replicas !== undefined) {
    const alone: ScriptCall = { script, keys, args, abandoned: false };
    const sendAlone = (): Promise<unknown> => new Promise((resolve, reject) => run(client, alone, { resolve, reject }));
    sendAcknowledged(client, call, { replicas, send: sendAlone }).then(resolve, reject);
    return;
  }
  const failed = (error: unknown): void => {
    const isUnknown = error instanceof Error && error.message.startsWith("NOSCRIPT");
    if (isUnknown && !call.abandoned) sendAtEndOfTick(client, { name: "eval", script, keys, args, resolve, reject });
    else reject(error);
  };
  sendAtEndOfTick(client, { name: "evalsha", script, keys, args, resolve, reject: failed });
}
