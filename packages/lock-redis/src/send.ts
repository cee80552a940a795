import { goByClientClock, goesByClientClock, mayRefuseTime, withClientTime } from "./client-clock.ts";
import type { RedisClient } from "./redis-client.ts";
import { sendAcknowledged } from "./replicas.ts";
import type { Script, ScriptCall } from "./script.ts";
import { sendAtEndOfTick } from "./tick-batch.ts";
import type { Answered, WaitingCommand } from "./waiting-command.ts";

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
  if (goesByClientClock(client)) run(client, withClientTime(call), answered);
  else run(client, call, new ByServerClock(client, call, answered));
}

/** The answer to a call by the server's clock: where that is refused, the call is sent again by this process's. */
class ByServerClock implements Answered {
  readonly #client: RedisClient;
  readonly #call: ScriptCall;
  readonly #answered: Answered;

  constructor(client: RedisClient, call: ScriptCall, answered: Answered) {
    this.#client = client;
    this.#call = call;
    this.#answered = answered;
  }

  resolve(reply: unknown): void {
    this.#answered.resolve(reply);
  }

  reject(error: unknown): void {
    if (this.#call.abandoned || !mayRefuseTime(error)) {
      this.#answered.reject(error);
      return;
    }
    const wentThrough = (reply: unknown): void => {
      goByClientClock(this.#client);
      this.#answered.resolve(reply);
    };
    const failed = (second: unknown): void => this.#answered.reject(second);
    run(this.#client, withClientTime(this.#call), { resolve: wentThrough, reject: failed });
  }
}

function run(client: RedisClient, call: ScriptCall, answered: Answered): void {
  const { script, keys, args, replicas } = call;
  if (replicas === undefined) {
    sendAtEndOfTick(client, new Delivery(client, call, answered));
    return;
  }
  const alone: ScriptCall = { script, keys, args, abandoned: false };
  const sendAlone = (): Promise<unknown> => new Promise((resolve, reject) => run(client, alone, { resolve, reject }));
  sendAcknowledged(client, call, { replicas, send: sendAlone }).then(
    (reply) => answered.resolve(reply),
    (error: unknown) => answered.reject(error),
  );
}

/**
 * A call on its way. By digest first; a server that does not know it (fresh, failed over, or after SCRIPT FLUSH) gets the
 * source on the same route. SCRIPT LOAD is never used: the server could lose the script again before the next call.
 */
class Delivery implements WaitingCommand {
  name: "evalsha" | "eval" = "evalsha";
  readonly script: Script;
  readonly keys: ScriptCall["keys"];
  readonly args: readonly string[];
  readonly #client: RedisClient;
  readonly #call: ScriptCall;
  readonly #answered: Answered;

  constructor(client: RedisClient, call: ScriptCall, answered: Answered) {
    this.script = call.script;
    this.keys = call.keys;
    this.args = call.args;
    this.#client = client;
    this.#call = call;
    this.#answered = answered;
  }

  resolve(reply: unknown): void {
    this.#answered.resolve(reply);
  }

  reject(error: unknown): void {
    const isUnknown = this.name === "evalsha" && error instanceof Error && error.message.startsWith("NOSCRIPT");
    if (isUnknown && !this.#call.abandoned) {
      this.name = "eval";
      sendAtEndOfTick(this.#client, this);
    } else this.#answered.reject(error);
  }
}
