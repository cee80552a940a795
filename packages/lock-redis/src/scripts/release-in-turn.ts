import { defineScript, type Script } from "../script.ts";
import { ARM, PRUNE } from "./fragments.ts";
import { JOIN, PASS_TURN } from "./queue.ts";

/** Ends the owner's lease (`ARGV[1]`) or returns from the script. Sets `left` to how many holders remain. */
export const END_LEASE: string = `${PRUNE}
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local left = redis.call('ZCARD', KEYS[1])
if left == 1 then
  left = 1 - redis.call('ZREM', KEYS[1], '__write__')
end
if left > 0 then
${ARM}
end
`;

/**
 * Ends the owner's lease as the plain script does, and gives the turn to the first in line when the lock is free then. The
 * caller's own next waiter gets in line before that.
 */
export const releaseInTurnScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- KEYS[2]  the line of those who wait for it
-- ARGV[1]  the owner token
-- ARGV[2]  the caller's name in line, '' when nobody waits there; with it:
-- ARGV[3]  its name in the other kind
-- ARGV[4]  how long its next waiter has waited, integral microseconds
-- ARGV[5]  how often pollers have a turn, integral microseconds; 0 for never
-- Reply    1 released, 2 released and it is the caller's turn, 3 the same with nobody else in line,
--          0 the owner held nothing, { type } for data that is no lock
`,
  END_LEASE,
  `
local us = time[1] * 1000000 + time[2]
local queue = KEYS[2]
local self = ARGV[2]
if self ~= '' then
  local other, yieldUs = ARGV[3], tonumber(ARGV[5])
  local since = us - ARGV[4]
${JOIN}
end
if left == 0 then
${PASS_TURN}
  if turn and turn == self then
    return redis.call('ZCARD', queue) == 1 and 3 or 2
  end
end
return 1
`,
);
