import { createHash } from "node:crypto";
import type { ReplicaAcknowledgement } from "./replica-options.ts";

/** A Lua script together with the digest by which the server knows it once it has seen it. */
export interface Script {
  readonly source: string;
  readonly sha1: string;
}

/** One request to run a script on a lock. */
export interface ScriptCall {
  readonly script: Script;
  /** `KEYS`: the full name of the lock's key, and of those beside it that the script works on. */
  readonly keys: readonly [string, ...string[]];
  /** `ARGV`. */
  readonly args: readonly string[];
  /** Set when a grant counts only once replicas have received it. */
  readonly replicas?: ReplicaAcknowledgement | undefined;
  /** Set once nobody waits for the answer any more: what has not been sent by then must not be sent at all. */
  abandoned: boolean;
  /** Told a reply that comes after the deadline. */
  onLateReply?: ((reply: unknown) => void) | undefined;
}

/** Joins fragments of Lua, all of them constants, into a script. */
export function defineScript(...fragments: readonly string[]): Script {
  const source = fragments.map((fragment) => fragment.trim()).join("\n");
  return { source, sha1: createHash("sha1").update(source).digest("hex") };
}
