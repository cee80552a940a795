import type { OneKeyCall } from "./asked.ts";
import { Deadline, withDeadline } from "./deadline.ts";
import { sendWhileMoving } from "./moving-slot.ts";
import type { RedisClient } from "./redis-client.ts";
import type { ScriptCall } from "./script.ts";
import { deliver, send } from "./send.ts";
import type { Answered } from "./waiting-command.ts";

/** What becomes of the answer to a call. */
export interface AskOptions<T> {
  readonly timeoutMs: number;
  readonly read: (reply: unknown) => T;
  /** Gives the error for the caller, whatever went wrong. */
  readonly failed: (error: unknown) => Error;
  /** What to send to a Cluster in place of the call while it moves the slot. */
  readonly instead?: OneKeyCall | undefined;
}

/**
 * Runs a script and gives what is read from its reply. What fails, or is not answered in time, is abandoned. A reply that
 * comes later than that is told to `call.onLateReply`.
 */
export function ask<T>(client: RedisClient, call: ScriptCall, options: AskOptions<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const pending = new PendingAnswer(call, options, { resolve, reject });
    if (client.isCluster !== true) deliver(client, call, pending);
    else {
      sendWhileMoving(client, call, options.instead).then(
        (reply) => pending.resolve(reply),
        (error: unknown) => pending.reject(error),
      );
    }
  });
}

interface Settle<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

class PendingAnswer<T> implements Answered {
  readonly #call: ScriptCall;
  readonly #options: AskOptions<T>;
  readonly #settle: Settle<T>;
  readonly #deadline: Deadline;

  constructor(call: ScriptCall, options: AskOptions<T>, settle: Settle<T>) {
    this.#call = call;
    this.#options = options;
    this.#settle = settle;
    this.#deadline = new Deadline(options, this);
  }

  resolve(reply: unknown): void {
    if (!this.#deadline.end()) {
      this.#call.onLateReply?.(reply);
      return;
    }
    try {
      this.#settle.resolve(this.#options.read(reply));
    } catch (error) {
      this.fail(error);
    }
  }

  reject(error: unknown): void {
    if (this.#deadline.end()) this.fail(error);
  }

  /** Called by the deadline as well, when it has passed. */
  fail(error: unknown): void {
    this.#call.abandoned = true;
    this.#settle.reject(this.#options.failed(error));
  }
}

/**
 * The same for a Cluster, which is asked `instead` when the script itself was not carried out in half of the time.
 */
export async function askEither<T>(
  client: RedisClient,
  call: ScriptCall,
  { timeoutMs, read, failed, instead }: AskOptions<T> & { readonly instead: OneKeyCall },
): Promise<T> {
  try {
    return read(await eitherInTime(client, call, { timeoutMs: Math.ceil(timeoutMs / 2), instead }));
  } catch (error) {
    call.abandoned = true;
    throw failed(error);
  }
}

async function eitherInTime(
  client: RedisClient,
  call: ScriptCall,
  { timeoutMs, instead }: { readonly timeoutMs: number; readonly instead: OneKeyCall },
): Promise<unknown> {
  try {
    return await withDeadline(sendWhileMoving(client, call, instead), { timeoutMs });
  } catch (error) {
    call.abandoned = true;
    const second = send(client, { ...instead, abandoned: false });
    const reply = await withDeadline(second, { timeoutMs }).catch(() => undefined); // The first error is the one to tell.
    // A no says nothing: the first may have been carried out after all.
    if (Number(reply) === 1) return reply;
    throw error;
  }
}
