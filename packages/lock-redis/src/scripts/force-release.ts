import { defineScript, type Script } from "../script.ts";
import { PRUNE } from "./fragments.ts";

/**
 * Removes all holders of the lock, whoever they are. A string is no lock of ours and stays, as all other data does. The
 * fence counter stays too: the next writer's token must be larger than those of the holders that were removed.
 */
export const forceReleaseScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- Reply    1 released, 0 nobody held it, { type } for data that is no lock
if redis.call('TYPE', KEYS[1]).ok == 'string' then
  return { 'string' }
end
`,
  PRUNE,
  `
if redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '+inf') == 0 then
  return 0
end
return 1
`,
);
