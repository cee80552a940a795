import { defineScript, type Script } from "../script.ts";
import { GRANT_FENCE, PRUNE, READ_FENCE, TILL } from "./fragments.ts";

/**
 * Turns the owner's live read lock into the write lock when nobody else holds the key, or re-arms its own write lock.
 * Unlike an acquire it never grants anew: an owner that is no member any more has lost its lease, and may have been
 * overtaken by a writer. With others there nothing changes but the pruning.
 */
export const promoteScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- KEYS[2]  its fence counter, when a fencing token is asked for
-- ARGV[1]  the owner token
-- ARGV[2]  TTL from now on, integral milliseconds
-- Reply    1 promoted, { 1, fencing token } with KEYS[2], 2 others are there, 0 not the owner's any more,
--          { type } or { type, KEYS[2] } for data that is no lock or no counter
`,
  PRUNE,
  `
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return 0
end
local minting = not redis.call('ZSCORE', KEYS[1], '__write__')
if redis.call('ZCARD', KEYS[1]) ~= (minting and 1 or 2) then
  return 2
end
`,
  READ_FENCE,
  TILL,
  `
redis.call('ZADD', KEYS[1], till, ARGV[1], till, '__write__')
redis.call('PEXPIREAT', KEYS[1], till)
`,
  GRANT_FENCE,
  "return 1",
);
