import type { OpenSession } from "./contender.ts";
import { open as openFloor } from "./contenders/floor.ts";
import { openOurs } from "./contenders/ours.ts";
import { openRedisSemaphore, openRedlock, openRedlockUniversal, openVerrou } from "./contenders/peers.ts";
import { openSocket } from "./contenders/socket.ts";

/** All that are compared; each runs in a process of its own. The floor is what ratios are of. */
export const CONTENDERS = {
  floor: openFloor,
  "bare socket": openSocket({ together: false }),
  "bare socket, one write per tick": openSocket({ together: true }),
  "@ota/lock-redis": openOurs({}),
  "@ota/lock-redis, fenced": openOurs({ fencing: true }),
  "@ota/lock-redis, node-only": openOurs({ store: { peers: "node-only" } }),
  "redlock 5": openRedlock,
  "redis-semaphore": openRedisSemaphore,
  "@verrou/core": openVerrou,
  "redlock-universal": openRedlockUniversal,
} as const satisfies Readonly<Record<string, OpenSession>>;

export type ContenderName = keyof typeof CONTENDERS;
