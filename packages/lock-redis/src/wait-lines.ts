import type {
  AcquireRequest,
  OwnedKey,
  PlaceAcquireResult,
  PlaceReleaseRequest,
  PlaceReleaseResult,
  PlaceRequest,
  ReleaseOutcome,
  StoreOperation,
  WaiterRequest,
  WaitPlace,
} from "@ota/lock-core";
import type { Asked, AskedGrant, Asking, OneKeyCall } from "./asked.ts";
import { companionIfAny } from "./companion-keys.ts";
import type { RedisClient } from "./redis-client.ts";
import type { RedisSubscriber } from "./redis-subscriber.ts";
import { type Answer, readAnswer, readHandOver, readRelease } from "./reply.ts";
import type { ScriptCall } from "./script.ts";
import { acquireScript } from "./scripts/acquire.ts";
import { acquireInTurnScript, acquireSharedInTurnScript } from "./scripts/acquire-in-turn.ts";
import { acquireSharedScript } from "./scripts/acquire-shared.ts";
import { handOverScript, handOverSharedScript } from "./scripts/hand-over.ts";
import { leaveScript } from "./scripts/leave.ts";
import { releaseScript } from "./scripts/release.ts";
import { releaseInTurnScript } from "./scripts/release-in-turn.ts";
import { wakeScript } from "./scripts/wake.ts";
import { send } from "./send.ts";
import { checkOwner, checkTtlMs } from "./validate.ts";
import { type LinedLock, WakeUps } from "./wake-ups.ts";

/** What the lines need of the store that they belong to. */
export interface LineStore {
  clientFor(operation: StoreOperation, request: Asking): RedisClient;
  keysOf(request: Asking, client: RedisClient): ScriptCall["keys"];
  grant(request: AcquireRequest, asked: AskedGrant): Promise<PlaceAcquireResult>;
  ask<T>(request: Asking, asked: Asked<T>): Promise<T>;
}

export interface WaitLinesOptions {
  readonly keyPrefix: string;
  readonly subscriber: RedisSubscriber | false | undefined;
  readonly peers: "any" | "node-only";
  /** 0 for never. */
  readonly yieldToPollersEveryMs: number;
  readonly store: LineStore;
}

/** The store's part in the lines of those who wait for its locks. The lines themselves are in Redis: `scripts/queue.ts`. */
export class WaitLines {
  readonly #store: LineStore;
  readonly #keyPrefix: string;
  readonly #wakeUps: WakeUps;
  readonly #yieldUs: string;
  readonly #handsOver: boolean;

  constructor({ keyPrefix, subscriber, peers, yieldToPollersEveryMs, store }: WaitLinesOptions) {
    this.#store = store;
    this.#keyPrefix = keyPrefix;
    this.#wakeUps = new WakeUps({ keyPrefix, subscriber });
    this.#yieldUs = microseconds(yieldToPollersEveryMs);
    this.#handsOver = peers === "node-only";
  }

  /** On a Cluster, a lock that can have no line in its own slot is only polled for. */
  openPlace({ key, onTurn }: PlaceRequest): WaitPlace {
    const place: Place = { onTurn, localTurns: 0 };
    return {
      acquire: (request) => this.#acquireInTurn(request, onTurn),
      release: (request) => this.#releaseFrom(place, request),
      leave: () => this.#leave(key),
    };
  }

  close(): void {
    this.#wakeUps.close();
  }

  /** Wakes the first in line. */
  release({ key, owner }: OwnedKey): Promise<ReleaseOutcome> {
    const owned = { key, owner: checkOwner(owner, key) };
    const client = this.#store.clientFor("release", owned);
    const [lock] = this.#store.keysOf(owned, client);
    const queue = this.#queueOf(key, client);
    const alone = { script: releaseScript, keys: [lock], args: [owner] } as const;
    return this.#store.ask(owned, {
      operation: "release",
      client,
      script: queue === undefined ? alone.script : releaseInTurnScript,
      keys: queue === undefined ? alone.keys : [lock, queue],
      args: queue === undefined ? alone.args : [owner, ""],
      instead: queue === undefined ? undefined : alone,
      read: readRelease,
    });
  }

  /** `next` gets in line before the first is woken. */
  async #releaseFrom(place: Place, { next, ...owned }: PlaceReleaseRequest): Promise<PlaceReleaseResult> {
    const args = [checkOwner(owned.owner, owned.key)];
    const client = this.#store.clientFor("release", owned);
    const [lock] = this.#store.keysOf(owned, client);
    const lined = this.#linedLock(lock, owned.key, client);
    if (lined === undefined || next === undefined) return { outcome: await this.release(owned), next: "turn" };
    const asked = { operation: "release", client, args, read: readAnswer } as const;
    const keys = [lock, lined.queue] as const;
    const instead = { script: releaseScript, keys: [lock], args: [...args] } as const;
    const { name, other } = this.#wakeUps.names(lined);
    this.#wakeUps.listen(lined, place.onTurn);
    args.push(name, other, microseconds(next.waitedMs), this.#yieldUs);
    const result = this.#handsOver
      ? await this.#handOver(owned, { next, place, call: { ...asked, keys, args, instead } })
      : releasedInTurn(await this.#store.ask(owned, { ...asked, script: releaseInTurnScript, keys, instead }));
    if (result.next === "waits") this.#wakeUps.subscribe(lined);
    return result;
  }

  /**
   * Lets the first in line know that it may try, after something else than a release has made room. In the background and
   * once: it is a hint, and who misses it asks by itself.
   */
  wake(key: string, client: RedisClient): void {
    const [lock] = this.#store.keysOf({ key }, client);
    const lined = this.#linedLock(lock, key, client);
    if (lined === undefined) return;
    send(client, { script: wakeScript, keys: [lock, lined.queue], args: [], abandoned: false }).catch(() => {});
  }

  async #acquireInTurn(request: WaiterRequest, onTurn: () => void): Promise<PlaceAcquireResult> {
    const client = this.#store.clientFor("acquire", request);
    const [lock, ...fence] = this.#store.keysOf(request, client);
    const lined = this.#linedLock(lock, request.key, client);
    if (lined === undefined) {
      const script = request.mode === "shared" ? acquireSharedScript : acquireScript;
      return this.#store.grant(request, { client, script, keys: [lock, ...fence], args: [] });
    }
    const { name, other } = this.#wakeUps.names(lined);
    this.#wakeUps.listen(lined, onTurn);
    const isShared = request.mode === "shared";
    const answer = await this.#store.grant(request, {
      client,
      script: isShared ? acquireSharedInTurnScript : acquireInTurnScript,
      keys: [lock, lined.queue, ...fence],
      args: [microseconds(request.waitedMs), name, other, this.#yieldUs],
      instead: fence.length > 0 ? undefined : isShared ? acquireSharedScript : acquireScript,
    });
    if (answer.outcome === "granted") this.#wakeUps.forget(lined);
    else this.#wakeUps.subscribe(lined);
    return answer;
  }

  async #handOver(owned: OwnedKey, { next, place, call }: HandOver): Promise<PlaceReleaseResult> {
    const { owner, ttlMs, mode } = next;
    const [lock, queue, ...fence] = [...call.keys, ...this.#store.keysOf(next, call.client).slice(1)];
    const mayPass = place.localTurns < MAX_LOCAL_TURNS ? "1" : "0";
    const result = await this.#store.ask(owned, {
      ...call,
      script: mode === "shared" ? handOverSharedScript : handOverScript,
      keys: [lock, queue, ...fence],
      args: [...call.args, checkOwner(owner, next.key), String(checkTtlMs(ttlMs)), mayPass],
      read: readHandOver,
    });
    place.localTurns = typeof result.next === "object" ? place.localTurns + 1 : 0;
    return result;
  }

  async #leave(key: string): Promise<void> {
    const client = this.#store.clientFor("release", { key });
    const [lock] = this.#store.keysOf({ key }, client);
    const lined = this.#linedLock(lock, key, client);
    if (lined === undefined) return;
    const { name, other } = this.#wakeUps.names(lined);
    this.#wakeUps.forget(lined);
    const keys = [lock, lined.queue] as const;
    const asked = { operation: "release", client, script: leaveScript, keys, args: [name, other] } as const;
    await this.#store.ask({ key }, { ...asked, read: () => {} });
  }

  #queueOf(key: string, client: RedisClient): string | undefined {
    return companionIfAny("queue", { key, keyPrefix: this.#keyPrefix, client });
  }

  /** The names that matter for waiting; none where the lock can have no line. */
  #linedLock(lock: string, key: string, client: RedisClient): (LinedLock & { readonly queue: string }) | undefined {
    const queue = this.#queueOf(key, client);
    if (queue === undefined) return undefined;
    const clientPrefix = client.options?.keyPrefix ?? "";
    return { lock: clientPrefix + lock, line: clientPrefix + queue, queue, client };
  }
}

/** The store's place for one lock. */
interface Place {
  readonly onTurn: () => void;
  /** How many times in a row the lock was passed on within this process. */
  localTurns: number;
}

interface HandOver {
  readonly next: WaiterRequest;
  readonly place: Place;
  readonly call: {
    readonly operation: StoreOperation;
    readonly client: RedisClient;
    readonly keys: readonly [string, string];
    readonly args: readonly string[];
    readonly instead: OneKeyCall;
  };
}

/** Keeps the waits of other processes short, and still saves them most of the messages. */
const MAX_LOCAL_TURNS = 8;

function releasedInTurn({ code }: Answer): PlaceReleaseResult {
  if (code === 0) return { outcome: "not-held" };
  return { outcome: "released", next: code === 1 ? "waits" : "turn", alone: code === 3 };
}

function microseconds(ms: number): string {
  return String(Math.round(ms * 1000));
}
