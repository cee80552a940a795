import { defineScript, type Script } from "../script.ts";
import { CLOCK, FOREIGN } from "./fragments.ts";

/** Says whether the owner holds the lock. Writes nothing, not even the pruning that symfony/lock does here. */
export const isHeldScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- ARGV[1]  the owner token
-- Reply    1 held by this owner, 0 not, { type } for data that is no lock
local answer = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
`,
  FOREIGN,
  CLOCK,
  `
if answer and tonumber(answer) > now then
  return 1
end
return 0
`,
);
