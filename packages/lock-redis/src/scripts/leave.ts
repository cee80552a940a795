import { defineScript, type Script } from "../script.ts";
import { PASS_TURN, QUEUE } from "./queue.ts";

/** Takes the caller out of line, and gives the turn to the next when the lock is free. */
export const leaveScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- KEYS[2]  the line of those who wait for it
-- ARGV[1]  the caller's name in line
-- ARGV[2]  its name in the other kind
-- Reply    1
`,
  QUEUE,
  `
local self = ''
redis.pcall('ZREM', queue, ARGV[1], ARGV[2])
-- The lock may be reserved for the caller: see hand-over.ts.
if redis.pcall('ZREM', KEYS[1], ARGV[1], ARGV[2]) == 1 then
  redis.call('ZREM', KEYS[1], '__write__')
end
if redis.pcall('ZCARD', KEYS[1]) == 0 then
${PASS_TURN}
end
return 1
`,
);
