import { defineScript, type Script } from "../script.ts";
import { ARM, PRUNE } from "./fragments.ts";

/**
 * Ends the owner's lease. The marker goes with it when it was the owner's, that is when nobody else is left; the key goes
 * with its last member, or is made to expire with the holders that remain.
 */
export const releaseScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- ARGV[1]  the owner token
-- Reply    1 released, 0 the owner held nothing, { type } for data that is no lock
`,
  PRUNE,
  `
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if redis.call('ZCARD', KEYS[1]) == 1 and redis.call('ZREM', KEYS[1], '__write__') == 1 then
  return 1
end
`,
  ARM,
  "return 1",
);
