import { defineScript, type Script } from "../script.ts";
import { ARM, PRUNE, TILL } from "./fragments.ts";

/**
 * Sets the end of the owner's live lease, and that of the marker when it is the owner's, that is when there is no third
 * member. A lease that has ended is not revived: it is pruned before the owner is looked for.
 */
export const extendScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- ARGV[1]  the owner token
-- ARGV[2]  TTL from now on, integral milliseconds
-- Reply    1 extended, 0 not the owner's any more, { type } for data that is no lock
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
  redis.call('ZADD', KEYS[1], 'XX', till, '__write__')
end
`,
  ARM,
  "return 1",
);
