import {
  type AcquireRequest,
  type AcquireResult,
  type ExtendOutcome,
  type ExtendRequest,
  type LockStore,
  LockStoreError,
  type OwnedKey,
  type ReleaseOutcome,
  type StoreOperation,
  type StoreReach,
} from "@ota/lock-core";
import { AbandonedAcquires } from "./abandoned-acquires.ts";
import { withDeadline } from "./deadline.ts";
import { mayBeGranted, toLockError } from "./fault.ts";
import type { RedisClient, RedisClientSource } from "./redis-client.ts";
import { readReply } from "./reply.ts";
import type { Script, ScriptCall } from "./script.ts";
import { acquireScript } from "./scripts/acquire.ts";
import { extendScript } from "./scripts/extend.ts";
import { isHeldScript } from "./scripts/is-held.ts";
import { releaseScript } from "./scripts/release.ts";
import { send } from "./send.ts";
import {
  checkClient,
  checkCommandTimeoutMs,
  checkKey,
  checkKeyPrefix,
  checkOptionNames,
  checkOwner,
  checkTtlMs,
} from "./validate.ts";

/** How a {@link RedisStore} names its keys and how long it waits for Redis. */
export interface RedisStoreOptions {
  /**
   * Put in front of every lock key, as it is. A `keyPrefix` of the client comes in front of that.
   * @default ""
   */
  readonly keyPrefix?: string;
  /**
   * How long one operation may take, in integral milliseconds from 1 to 2^31 - 1, whatever timeouts and retries the
   * client has. Then it ends as a `LockStoreError`.
   * @default 1000
   */
  readonly commandTimeoutMs?: number;
}

/**
 * Locks in Redis, one sorted set per key, in the layout of symfony/lock's RedisStore (5.2 and later): PHP and Node
 * processes exclude each other.
 *
 * Each operation is one script call and takes at most `commandTimeoutMs`. The server's clock decides when a lease ends.
 * Any number of operations may run at once; stores over the same Redis and prefix see each other.
 *
 * @throws LockOptionsError from every operation for a key, owner or TTL that cannot be honoured.
 * @throws LockKeyConflictError from every operation when the key holds data that is no lock. A plain string is taken for
 * somebody else's lock.
 * @throws LockStoreError from every operation when Redis fails, refuses or does not answer.
 */
export class RedisStore implements LockStore {
  readonly name = "redis";
  readonly reach: StoreReach = "shared";

  readonly #currentClient: () => RedisClient;
  readonly #keyPrefix: string;
  readonly #commandTimeoutMs: number;
  readonly #abandoned: AbandonedAcquires;
  #closed = false;

  /** @throws LockOptionsError when the client or an option cannot be used. */
  constructor(client: RedisClientSource, options: RedisStoreOptions = {}) {
    checkOptionNames(options);
    this.#currentClient = typeof client === "function" ? () => checkClient(client()) : always(checkClient(client));
    this.#keyPrefix = checkKeyPrefix(options.keyPrefix ?? "");
    this.#commandTimeoutMs = checkCommandTimeoutMs(options.commandTimeoutMs ?? 1000);
    this.#abandoned = new AbandonedAcquires({
      timeoutMs: this.#commandTimeoutMs,
      currentClient: this.#currentClient,
    });
  }

  /**
   * Grants the key, or says `contended`. When it fails with anything but a plain refusal, a release with the same token
   * follows in the background until Redis has answered it, so that nothing is left behind; until then the same owner
   * cannot acquire the key again.
   */
  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { owner, ttlMs } = request;
    const call = this.#callFor(acquireScript, request, [String(checkTtlMs(ttlMs))]);
    const { key } = call;
    if (this.#closed) throw this.#refusal(request, "the store was closed.");
    if (this.#abandoned.has(key, owner)) {
      throw this.#refusal(request, "a failed attempt of this owner is still being undone. Use a fresh owner token.");
    }

    const client = this.#clientFor("acquire", request);
    const reply = send(client, call);
    try {
      const granted = await this.#answer(reply);
      return granted ? { outcome: "granted" } : { outcome: "contended" };
    } catch (error) {
      call.abandoned = true;
      if (mayBeGranted(error)) this.#abandoned.add({ client, key, owner, ttlMs, reply, error });
      throw toLockError(error, { operation: "acquire", ...request });
    }
  }

  async extend(request: ExtendRequest): Promise<ExtendOutcome> {
    const call = this.#callFor(extendScript, request, [String(checkTtlMs(request.ttlMs))]);
    return (await this.#ask("extend", request, call)) ? "extended" : "lost";
  }

  async release(request: OwnedKey): Promise<ReleaseOutcome> {
    const call = this.#callFor(releaseScript, request);
    return (await this.#ask("release", request, call)) ? "released" : "not-held";
  }

  /** Writes nothing, so it also works, with possibly stale answers, on a replica. */
  async isHeld(request: OwnedKey): Promise<boolean> {
    return await this.#ask("isHeld", request, this.#callFor(isHeldScript, request));
  }

  /**
   * Ends the store's background work: what failed acquires may have left behind is released once more, which takes a
   * few `commandTimeoutMs` at most. From now on `acquire` throws a `LockStoreError`; leases may still be extended and
   * released. The client is the caller's, and stays open.
   *
   * Not closing a store leaks nothing and keeps no process alive.
   */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#abandoned.close();
  }

  async #ask(operation: StoreOperation, request: OwnedKey, call: ScriptCall): Promise<boolean> {
    const client = this.#clientFor(operation, request);
    try {
      return await this.#answer(send(client, call));
    } catch (error) {
      call.abandoned = true;
      throw toLockError(error, { operation, ...request });
    }
  }

  async #answer(reply: Promise<unknown>): Promise<boolean> {
    return readReply(await withDeadline(reply, { timeoutMs: this.#commandTimeoutMs }));
  }

  #callFor(script: Script, { key, owner }: OwnedKey, args: readonly string[] = []): ScriptCall {
    return {
      script,
      key: checkKey(key, this.#keyPrefix),
      args: [checkOwner(owner, key), ...args],
      abandoned: false,
    };
  }

  #clientFor(operation: StoreOperation, { key, owner }: OwnedKey): RedisClient {
    try {
      return this.#currentClient();
    } catch (error) {
      throw toLockError(error, { operation, key, owner });
    }
  }

  #refusal({ key }: OwnedKey, reason: string): LockStoreError {
    return new LockStoreError({ store: this.name, operation: "acquire", key, reason });
  }
}

function always<T>(value: T): () => T {
  return () => value;
}
