import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { address, type Session, TTL_MS } from "../contender.ts";
import { COMPARE_AND_DELETE } from "./compare-and-delete.ts";

/** How often a held key is asked for, where nothing tells when it becomes free. */
const POLL_MS = 10;

/**
 * The floor: ioredis with its defaults, `SET key token NX PX ttl` and a compare-and-delete by EVALSHA. No library does less.
 * Who finds the key held asks again after a while.
 */
export async function open(url: string): Promise<Session> {
  const redis = new Redis(address(url));
  const sha = String(await redis.script("LOAD", COMPARE_AND_DELETE));
  return {
    async pair(key) {
      const token = randomBytes(32).toString("base64");
      await redis.set(key, token, "PX", TTL_MS, "NX");
      await redis.evalsha(sha, 1, key, token);
    },
    async waitFor(key, work) {
      const token = randomBytes(32).toString("base64");
      while ((await redis.set(key, token, "PX", TTL_MS, "NX")) === null) await sleep(POLL_MS);
      await work();
      await redis.evalsha(sha, 1, key, token);
    },
    async hold(key) {
      const token = randomBytes(32).toString("base64");
      await redis.set(key, token, "PX", TTL_MS, "NX");
      return token;
    },
    async close() {
      redis.disconnect();
    },
  };
}
