import { defineScript, type Script } from "../script.ts";
import { ARM, PRUNE, TILL } from "./fragments.ts";

/**
 * Turns the owner's live write lock into a read lock, or re-arms its read lock. The marker goes when it is the owner's,
 * that is when there is no third member.
 */
export const demoteScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- ARGV[1]  the owner token
-- ARGV[2]  TTL from now on, integral milliseconds
-- Reply    1 demoted, 0 not the owner's any more, { type } for data that is no lock
`,
  PRUNE,
  `
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return 0
end
`,
  TILL,
  `
redis.call('ZADD', KEYS[1], till, ARGV[1])
if redis.call('ZCARD', KEYS[1]) == 2 then
  redis.call('ZREM', KEYS[1], '__write__')
end
`,
  ARM,
  "return 1",
);
