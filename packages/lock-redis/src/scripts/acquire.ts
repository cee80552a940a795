import { defineScript, type Script } from "../script.ts";
import { GRANT_FENCE, PRUNE, READ_FENCE, TILL } from "./fragments.ts";

/**
 * Takes the write lock, or re-arms the owner's own one.
 *
 * Granted when the key has no holder, when the owner holds the write lock already, or when the owner is the only reader.
 * A marker without an owner, or beside a third member, never comes from symfony/lock; it counts as held by someone else.
 * A refusal changes nothing but the pruning.
 */
export const acquireScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- KEYS[2]  its fence counter, when a fencing token is asked for
-- ARGV[1]  the owner token
-- ARGV[2]  TTL, integral milliseconds
-- Reply    1 granted, { 1, fencing token } with KEYS[2], 0 held by someone else,
--          { type } or { type, KEYS[2] } for data that is no lock or no counter
`,
  PRUNE,
  `
local minting = true
local members = redis.call('ZCARD', KEYS[1])
if members > 0 then
  local own = redis.call('ZSCORE', KEYS[1], ARGV[1])
  local marker = redis.call('ZSCORE', KEYS[1], '__write__')
  if not own or members ~= (marker and 2 or 1) then
    return 0
  end
  minting = not marker
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
