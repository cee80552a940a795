import type { KeyRequest, StoreOperation } from "@ota/lock-core";
import type { RedisClient } from "./redis-client.ts";
import type { Script, ScriptCall } from "./script.ts";

/** What every request may say. */
export interface Asking extends KeyRequest {
  readonly owner?: string;
  readonly fencing?: boolean | undefined;
}

/** One request to run a script, and how its reply is read. */
export interface Asked<T> {
  readonly operation: StoreOperation;
  readonly script: Script;
  readonly args: readonly string[];
  readonly read: (reply: unknown) => T;
  /** Whether it gives the owner a new end of its lease, of which replicas may have to know. */
  readonly renews?: boolean;
  /** Whether a yes may let in those who wait: then the first of them is told. */
  readonly makesRoom?: boolean;
  /**
   * Asked of a Cluster when the script itself was not carried out in half of the time. While a slot is being moved, only
   * scripts on one key are.
   */
  readonly instead?: OneKeyCall | undefined;
  /** By default the current one. */
  readonly client?: RedisClient;
  /** By default the lock's, and its fence counter's when a token is asked for. */
  readonly keys?: ScriptCall["keys"];
}

/** A script on one key, for when several cannot be had. */
export type OneKeyCall = Omit<ScriptCall, "abandoned">;

/** One request to run a script that may grant the lock. The owner token and the TTL come before `args`. */
export interface AskedGrant {
  readonly client: RedisClient;
  readonly script: Script;
  readonly keys: ScriptCall["keys"];
  readonly args: readonly string[];
  /** The script that does without the other keys, for a Cluster that refuses this one while it moves the slot. */
  readonly instead?: Script | undefined;
}
