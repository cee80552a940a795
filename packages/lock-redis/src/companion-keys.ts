import { LockOptionsError } from "@ota/lock-core";
import type { RedisClient } from "./redis-client.ts";
import { hashedPart, hashTag } from "./slot.ts";

/** What a companion key is for: `fence` counts a lock's fencing tokens, `queue` is the line of those who wait for it. */
export type CompanionKind = "fence" | "queue";

/** Companions' names have a hash tag in front of their end. A lock may not be called like that. */
const TAGGED = /\{.*\}/s;

/**
 * The name of a key that belongs to a lock and lies in the lock's slot of a Cluster, to be sent over `client`: the hash
 * tag of the lock's own name is used if it has one, else the whole name becomes the tag.
 *
 * | lock | companion |
 * |---|---|
 * | `firmware:7` | `{firmware:7}:fence` |
 * | `{firmware}:7` | `{firmware}:{firmware}:7:fence` |
 * | `firmware:7` behind the prefix `ota:` | `ota:{ota:firmware:7}:fence` |
 *
 * Prefixes stay in front, so that a rule for them (an ACL, a clean-up) covers the companions, and count as part of the
 * lock's name whether the client or the store adds them.
 *
 * @throws LockOptionsError when no name can share the lock's slot on a Cluster: for a key that contains `}` but no hash
 * tag, and for the empty one. Elsewhere they have companions like any other.
 */
export function companionKey(kind: CompanionKind, lock: CompanionOwner): string {
  const companion = companionIfAny(kind, lock);
  if (companion !== undefined) return companion;
  throw new LockOptionsError({
    option: "key",
    value: lock.key,
    expected: "neither empty nor with a } that closes no hash tag, to have a fence counter on a Cluster",
    key: lock.key,
  });
}

/** The same, or `undefined` where there can be none. */
export function companionIfAny(kind: CompanionKind, { key, keyPrefix, client }: CompanionOwner): string | undefined {
  const clientPrefix = String(client?.options?.keyPrefix ?? "");
  const stored = clientPrefix + keyPrefix + key;
  const tag = hashTag(stored);
  const companion = `${keyPrefix}${tag === undefined ? `{${stored}}` : `{${tag}}:${key}`}:${kind}`;
  if (client?.isCluster === true && hashedPart(clientPrefix + companion) !== hashedPart(stored)) return undefined;
  return companion;
}

/** The lock that a companion belongs to. */
export interface CompanionOwner {
  readonly key: string;
  readonly keyPrefix: string;
  readonly client: RedisClient | undefined;
}

/** Whether a lock of this name could be taken for another lock's companion. */
export function isCompanionName(name: string): boolean {
  return (name.endsWith(":fence") || name.endsWith(":queue")) && TAGGED.test(name);
}
