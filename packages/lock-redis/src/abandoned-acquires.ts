import { setTimeout as sleep } from "node:timers/promises";
import { NoAnswerInTime, withDeadline } from "./deadline.ts";
import type { RedisClient } from "./redis-client.ts";
import type { ScriptCall } from "./script.ts";
import { releaseScript } from "./scripts/release.ts";
import { send } from "./send.ts";

const FIRST_PAUSE_MS = 50;
/** A server that comes back is rid of the leftovers within about this time. */
const LONGEST_PAUSE_MS = 1000;

/** An acquire that failed for its caller, though the server may have granted it or may still do so. */
export interface AbandonedAcquire {
  readonly client: RedisClient;
  /** The full name of the lock's key. */
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  /** The call whose answer was given up waiting for. */
  readonly call: ScriptCall;
  /** Why it failed. */
  readonly error: unknown;
  /** Called when a grant was taken back, with the client that did it: the lock may be free for others. */
  readonly onReleased: (client: RedisClient) => void;
}

/**
 * Takes back what failed acquires may have been granted: a release with the same token, on the same client so that it
 * goes behind the acquire, and again until it is answered or the lease would have lapsed anyway.
 *
 * Works in the background, keeps no process alive and rejects to nobody: the caller already has the error.
 */
export class AbandonedAcquires {
  readonly #timeoutMs: number;
  readonly #currentClient: () => RedisClient;
  readonly #open = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(options: { readonly timeoutMs: number; readonly currentClient: () => RedisClient }) {
    this.#timeoutMs = options.timeoutMs;
    this.#currentClient = options.currentClient;
  }

  add(acquire: AbandonedAcquire): void {
    this.#begin(acquire);
    if (acquire.error instanceof NoAnswerInTime) {
      // A client that redirects or reconnects may send the acquire after the release. Then its late answer tells.
      acquire.call.onLateReply = (reply) => {
        if (reply !== 0) this.#begin(acquire);
      };
    }
  }

  /** Whether a release of this owner is still under way; it would take away what a new acquire is granted. */
  has(key: string, owner: string): boolean {
    return this.#open.size > 0 && this.#open.has(identify(key, owner));
  }

  /** Tries each remaining release a last time, then stops. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#open.values());
  }

  #begin(acquire: AbandonedAcquire): void {
    const id = identify(acquire.key, acquire.owner);
    const work = this.#release(acquire).finally(() => {
      if (this.#open.get(id) === work) this.#open.delete(id);
    });
    this.#open.set(id, work);
  }

  async #release(acquire: AbandonedAcquire): Promise<void> {
    const lapsesAt = performance.now() + acquire.ttlMs;
    const { signal } = this.#closing;
    let pauseMs = FIRST_PAUSE_MS;
    for (;;) {
      const last = signal.aborted || performance.now() >= lapsesAt;
      if ((await this.#attempt(acquire)) || last) return;
      // Ended early by close(), which wants one more attempt.
      await sleep(pauseMs, undefined, { ref: false, signal }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  /** Whether Redis answered. A client that has been replaced may be closed for good: then the current one is used. */
  async #attempt({ client, key, owner, onReleased }: AbandonedAcquire): Promise<boolean> {
    const call: ScriptCall = { script: releaseScript, keys: [key], args: [owner], abandoned: false };
    const ask = async (over: RedisClient) => {
      const reply = await withDeadline(send(over, call), { timeoutMs: this.#timeoutMs, background: true });
      if (Number(reply) === 1) onReleased(over);
    };
    try {
      await ask(client).catch((error: unknown) => {
        const current = this.#currentClient();
        if (current === client) throw error;
        return ask(current);
      });
      return true;
    } catch {
      return false; // The next round follows; the caller of acquire has been told of the fault.
    }
  }
}

function identify(key: string, owner: string): string {
  return JSON.stringify([key, owner]);
}
