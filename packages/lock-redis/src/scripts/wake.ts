import { defineScript, type Script } from "../script.ts";
import { PASS_TURN, QUEUE } from "./queue.ts";

/**
 * Gives the turn to the first in line when the lock is free or has readers, who leave room for others: for what lets others
 * in without being a release of its own line. Changes nothing else, so it may come late, twice or in vain.
 */
export const wakeScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- KEYS[2]  the line of those who wait for it
-- Reply    1
`,
  QUEUE,
  `
local self = ''
if not redis.pcall('ZSCORE', KEYS[1], '__write__') then
${PASS_TURN}
end
return 1
`,
);
