import { defineScript, type Script } from "../script.ts";
import { ARM, CLOCK, FOREIGN, PRUNE } from "./fragments.ts";

/**
 * Sets the end of the owner's live lease, and that of the marker when it is the owner's. A lease that has ended is not
 * revived: it is pruned before the owner is looked for.
 */
export const extendScript: Script = defineScript(
  CLOCK,
  FOREIGN,
  PRUNE,
  ARM,
  `
-- KEYS[1]  the lock
-- ARGV[1]  the owner token
-- ARGV[2]  TTL from now on, integral milliseconds
-- Reply    1 extended, 0 not the owner's any more, { type } for data that is no lock
local at = now()
local refusal = prune(KEYS[1], at)
if refusal then
  return refusal
end
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return 0
end

local till = integral(at + ARGV[2])
redis.call('ZADD', KEYS[1], till, ARGV[1])
if redis.call('ZCARD', KEYS[1]) == 2 then
  redis.call('ZADD', KEYS[1], 'XX', till, '__write__')
end
arm(KEYS[1])
return 1
`,
);
