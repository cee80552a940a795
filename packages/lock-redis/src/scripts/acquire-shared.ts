import { defineScript, type Script } from "../script.ts";
import { ARM, GRANT_FENCE, PRUNE, READ_FENCE, TILL } from "./fragments.ts";

/**
 * Takes a read lock, or re-arms the owner's own one. The owner of the write lock comes down to a read lock.
 *
 * Refused while the marker is there, unless it is the owner's, that is when there is no third member. A refusal changes
 * nothing but the pruning. A reader gets the latest fencing token; one is minted only where there is none.
 */
export const acquireSharedScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- KEYS[2]  its fence counter, when a fencing token is asked for
-- ARGV[1]  the owner token
-- ARGV[2]  TTL, integral milliseconds
-- Reply    1 granted, { 1, fencing token } with KEYS[2], 0 held by a writer,
--          { type } or { type, KEYS[2] } for data that is no lock or no counter
`,
  PRUNE,
  `
local marker = redis.call('ZSCORE', KEYS[1], '__write__')
if marker and not (redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) == 2) then
  return 0
end
`,
  READ_FENCE,
  TILL,
  `
redis.call('ZADD', KEYS[1], till, ARGV[1])
if marker then
  redis.call('ZREM', KEYS[1], '__write__')
end
`,
  ARM,
  "local minting = false",
  GRANT_FENCE,
  "return 1",
);
