import {
  type AcquireRequest,
  type AcquireResult,
  type DemoteOutcome,
  type ExtendOutcome,
  type ExtendRequest,
  type FencingStore,
  type InspectableStore,
  type KeyRequest,
  type LockSnapshot,
  LockStoreError,
  type OwnedKey,
  type PlaceAcquireResult,
  type PlaceRequest,
  type PromoteRequest,
  type PromoteResult,
  type ReleaseOutcome,
  type SharedLockStore,
  type StoreOperation,
  type StoreReach,
  type WaitPlace,
  type WaitQueueStore,
} from "@ota/lock-core";
import { AbandonedAcquires } from "./abandoned-acquires.ts";
import { ask, askEither } from "./ask.ts";
import type { Asked, AskedGrant, Asking } from "./asked.ts";
import { companionKey } from "./companion-keys.ts";
import { mayBeGranted, toLockError } from "./fault.ts";
import type { RedisClient, RedisClientSource } from "./redis-client.ts";
import type { RedisSubscriber } from "./redis-subscriber.ts";
import type { ReplicaAcknowledgement, ReplicaOptions } from "./replica-options.ts";
import { type Answer, readAnswer, readGrant, readSnapshot } from "./reply.ts";
import type { ScriptCall } from "./script.ts";
import { acquireScript } from "./scripts/acquire.ts";
import { acquireSharedScript } from "./scripts/acquire-shared.ts";
import { demoteScript } from "./scripts/demote.ts";
import { extendScript } from "./scripts/extend.ts";
import { forceReleaseScript } from "./scripts/force-release.ts";
import { inspectScript } from "./scripts/inspect.ts";
import { isHeldScript } from "./scripts/is-held.ts";
import { promoteScript } from "./scripts/promote.ts";
import {
  checkClient,
  checkCommandTimeoutMs,
  checkKey,
  checkKeyPrefix,
  checkOptionNames,
  checkOwner,
  checkPeers,
  checkReplicas,
  checkSubscriber,
  checkTtlMs,
  checkYieldToPollersEveryMs,
} from "./validate.ts";
import { WaitLines } from "./wait-lines.ts";

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
  /**
   * What listens for the messages by which a release wakes the next in line: a client that does nothing else, or `false`
   * to poll alone. On a Cluster it must have been made with `shardedSubscribers: true`.
   * @default a duplicate of the client, made when a lock is first waited for and closed by `close`
   */
  readonly subscriber?: RedisSubscriber | false;
  /**
   * Who else takes these locks. `any`: a release frees the key and then wakes the next, so that whoever polls for it (PHP,
   * older versions) can have it in between. `node-only`: a release passes the lock on without freeing it, within a process
   * in one request, for at most eight turns before it goes to the next process that has waited longer.
   * @default "any"
   */
  readonly peers?: "any" | "node-only";
  /**
   * How often, in integral milliseconds from 200 up, those in line leave a free lock alone for 120 ms, so that others who
   * only poll (PHP, older versions) get it as well. Without it they may starve while there is always somebody in line.
   * @default never
   */
  readonly yieldToPollersEveryMs?: number;
  /**
   * Makes each grant, extension, promotion and demotion wait until replicas have received it. Too few of them are a
   * `LockStoreError`, and an acquire is then undone. It narrows the window in which a failover gives a lock to two owners,
   * and does not close it: a replica without the grant may still be the one that is promoted. The connection does nothing
   * else while it waits.
   * @default none
   */
  readonly replicas?: ReplicaOptions;
}

/**
 * Locks in Redis, one sorted set per key, in the layout of symfony/lock's RedisStore (5.2 and later): PHP and Node
 * processes exclude each other, as writers and as readers.
 *
 * Each operation is one atomic step and one round trip, and takes at most `commandTimeoutMs`. The server's clock decides
 * when a lease ends; on a server that refuses TIME in scripts those of the processes do, of which a process warning tells
 * (`LOCK_CLIENT_CLOCK`).
 * Any number of operations may run at once; stores over the same Redis and prefix see each other.
 *
 * @throws LockOptionsError from every operation for a key, owner or TTL that cannot be honoured.
 * @throws LockKeyConflictError from every operation when the key holds data that is no lock. A plain string is taken for
 * somebody else's lock.
 * @throws LockStoreError from every operation when Redis fails, refuses or does not answer.
 */
export class RedisStore implements SharedLockStore, FencingStore, InspectableStore, WaitQueueStore {
  readonly name = "redis";
  readonly reach: StoreReach = "shared";

  /** The client itself, unless a function gives one for each operation. */
  readonly #fixedClient: RedisClient | undefined;
  readonly #currentClient: () => RedisClient;
  readonly #keyPrefix: string;
  readonly #commandTimeoutMs: number;
  readonly #abandoned: AbandonedAcquires;
  readonly #lines: WaitLines;
  readonly #replicas: ReplicaAcknowledgement | undefined;
  #closed = false;

  /** @throws LockOptionsError when the client or an option cannot be used. */
  constructor(client: RedisClientSource, options: RedisStoreOptions = {}) {
    checkOptionNames(options);
    this.#fixedClient = typeof client === "function" ? undefined : checkClient(client);
    this.#currentClient = typeof client === "function" ? () => checkClient(client()) : always(client);
    this.#keyPrefix = checkKeyPrefix(options.keyPrefix ?? "");
    this.#commandTimeoutMs = checkCommandTimeoutMs(options.commandTimeoutMs ?? 1000);
    const peers = checkPeers(options.peers ?? "any");
    this.#replicas = checkReplicas(options.replicas, { commandTimeoutMs: this.#commandTimeoutMs, peers });
    this.#lines = new WaitLines({
      keyPrefix: this.#keyPrefix,
      subscriber: checkSubscriber(options.subscriber),
      peers,
      yieldToPollersEveryMs: checkYieldToPollersEveryMs(options.yieldToPollersEveryMs) ?? 0,
      store: {
        clientFor: (operation, request) => this.#clientFor(operation, request),
        keysOf: (request, client) => this.#keysOf(request, client),
        grant: (request, asked) => this.#grant(request, asked),
        ask: (request, asked) => this.#ask(request, asked),
      },
    });
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
    const client = this.#clientFor("acquire", request);
    const script = request.mode === "shared" ? acquireSharedScript : acquireScript;
    return await this.#grant(request, { client, script, keys: this.#keysOf(request, client), args: [] });
  }

  #grant(request: AcquireRequest, asked: AskedGrant): Promise<PlaceAcquireResult> {
    const { owner, ttlMs } = request;
    const { client, script, keys } = asked;
    const args = [checkOwner(owner, request.key), String(checkTtlMs(ttlMs)), ...asked.args];
    const [key] = keys;
    if (this.#closed) throw this.#refusal(request, "the store was closed.");
    if (this.#abandoned.has(key, owner)) {
      throw this.#refusal(request, "a failed attempt of this owner is still being undone. Use a fresh owner token.");
    }

    const call: ScriptCall = { script, keys, args, replicas: this.#replicas, abandoned: false };
    const instead = asked.instead && { script: asked.instead, keys: [key] as const, args: args.slice(0, 2) };
    const failed = (error: unknown) => {
      if (mayBeGranted(error)) {
        const onReleased = (over: RedisClient) => this.#lines.wake(request.key, over);
        this.#abandoned.add({ client, key, owner, ttlMs, call, error, onReleased });
      }
      return toLockError(error, { operation: "acquire", ...request });
    };
    return ask(client, call, { timeoutMs: this.#commandTimeoutMs, read: readGrant, failed, instead });
  }

  async extend(request: ExtendRequest): Promise<ExtendOutcome> {
    return (await this.#renew("extend", request, { script: extendScript })).code === 1 ? "extended" : "lost";
  }

  /** Wakes the first in line when the lock is free then, as every release does. */
  async release(request: OwnedKey): Promise<ReleaseOutcome> {
    return await this.#lines.release(request);
  }

  /** Writes nothing, so it also works, with possibly stale answers, on a replica. */
  async isHeld(request: OwnedKey): Promise<boolean> {
    const args = [checkOwner(request.owner, request.key)];
    return (await this.#ask(request, { operation: "isHeld", script: isHeldScript, args, read: readAnswer })).code === 1;
  }

  async promote(request: PromoteRequest): Promise<PromoteResult> {
    const { code, ...grant } = await this.#renew("promote", request, { script: promoteScript });
    if (code === 1) return { outcome: "promoted", ...grant };
    return { outcome: code === 2 ? "contended" : "lost" };
  }

  /**
   * Makes the owner's live lease shared, in one step, and wakes the first in line, as it may be a reader. `lost` when the
   * owner holds nothing any more.
   */
  async demote(request: ExtendRequest): Promise<DemoteOutcome> {
    const { code } = await this.#renew("demote", request, { script: demoteScript, makesRoom: true });
    return code === 1 ? "demoted" : "lost";
  }

  /**
   * On a Cluster, refuses keys that can have no fence counter in their own slot. Where a function gives the client, this
   * cannot be told here: then `acquire` and `promote` refuse them.
   */
  checkFencing(key: string): void {
    this.#keysOf({ key, fencing: true }, this.#fixedClient);
  }

  /** Writes nothing. A plain string under the key counts as an exclusive lock of somebody else. */
  async inspect(request: KeyRequest): Promise<LockSnapshot> {
    return await this.#ask(request, { operation: "inspect", script: inspectScript, args: [], read: readSnapshot });
  }

  /**
   * Wakes the first in line. A plain string under the key is no lock of ours: a `LockKeyConflictError`, as for any other
   * data.
   */
  async forceRelease(request: KeyRequest): Promise<ReleaseOutcome> {
    const asked = { operation: "forceRelease", script: forceReleaseScript, args: [], read: readAnswer } as const;
    return (await this.#ask(request, { ...asked, makesRoom: true })).code === 1 ? "released" : "not-held";
  }

  /**
   * Those in line are woken one after the other, by messages; but all of them ask now and then as well, as messages can get
   * lost. On a Cluster, a key that cannot have a line in its own slot is only polled for.
   */
  openPlace(request: PlaceRequest): WaitPlace {
    return this.#lines.openPlace(request);
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
    this.#lines.close();
    await this.#abandoned.close();
  }

  /** Asks for a new end of the owner's lease. */
  #renew(
    operation: StoreOperation,
    request: ExtendRequest & Asking,
    asked: Pick<Asked<Answer>, "script" | "makesRoom">,
  ): Promise<Answer> {
    const args = [checkOwner(request.owner, request.key), String(checkTtlMs(request.ttlMs))];
    return this.#ask(request, { ...asked, operation, args, renews: true, read: readAnswer });
  }

  #ask<T>(request: Asking, asked: Asked<T>): Promise<T> {
    const { operation, script, args, instead, client = this.#clientFor(operation, request) } = asked;
    const keys = asked.keys ?? this.#keysOf(request, client);
    const replicas = asked.renews === true ? this.#replicas : undefined;
    const call: ScriptCall = { script, keys, args, replicas, abandoned: false };
    const read = (reply: unknown): T => {
      if (asked.makesRoom === true && Number(reply) === 1) this.#lines.wake(request.key, client);
      return asked.read(reply);
    };
    const failed = (error: unknown) => toLockError(error, { operation, ...request });
    const options = { timeoutMs: this.#commandTimeoutMs, read, failed };
    return instead === undefined || client.isCluster !== true
      ? ask(client, call, options)
      : askEither(client, call, { ...options, instead });
  }

  /** The lock's key by its full name, and that of its fence counter when a token is asked for. */
  #keysOf({ key, fencing }: Asking, client: RedisClient | undefined): ScriptCall["keys"] {
    const name = checkKey(key, this.#keyPrefix);
    if (fencing !== true) return [name];
    return [name, companionKey("fence", { key, keyPrefix: this.#keyPrefix, client })];
  }

  #clientFor(operation: StoreOperation, { key, owner }: Asking): RedisClient {
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
