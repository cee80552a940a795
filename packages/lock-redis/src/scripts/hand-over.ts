import { defineScript, type Script } from "../script.ts";
import { acquireScript } from "./acquire.ts";
import { acquireSharedScript } from "./acquire-shared.ts";
import { JOIN, PASS_TURN } from "./queue.ts";
import { END_LEASE } from "./release-in-turn.ts";

/** Releases, and grants the write lock to the caller's next waiter in the same step when it may have it. */
export const handOverScript: Script = handOver(acquireScript);

/** The same for a next waiter that wants a read lock. */
export const handOverSharedScript: Script = handOver(acquireSharedScript);

/**
 * Where only Node processes share the lock, it need not be free in between. The caller's own next waiter gets it when it is
 * the first in line, or when it may pass those of other processes. Otherwise the lock is reserved for the one whose turn it
 * is, under its name in line instead of an owner token, for as long as the turn lasts; its acquire takes that away.
 */
function handOver(plain: Script): Script {
  return defineScript(
    `
-- KEYS[1]  the lock
-- KEYS[2]  the line of those who wait for it
-- KEYS[3]  its fence counter, when the next waiter asks for a fencing token
-- ARGV[1]  the owner token
-- ARGV[2]  the caller's name in line
-- ARGV[3]  its name in the other kind
-- ARGV[4]  how long its next waiter has waited, integral microseconds
-- ARGV[5]  how often pollers have a turn, integral microseconds; 0 for never
-- ARGV[6]  the owner token of the next waiter
-- ARGV[7]  its TTL, integral milliseconds
-- ARGV[8]  1 when it may pass those of other processes
-- Reply    { 2, reply of the plain script for the next waiter }, 1 released, 0 the owner held nothing,
--          { type } for data that is no lock
`,
    "local function attempt(KEYS, ARGV)",
    plain.source,
    "end",
    END_LEASE,
    `
local us = time[1] * 1000000 + time[2]
local queue = KEYS[2]
local self, other, yieldUs = ARGV[2], ARGV[3], tonumber(ARGV[5])
local since = us - ARGV[4]
${JOIN}
if left > 0 then
  return 1
end
if ARGV[8] ~= '1' then
${PASS_TURN}
  if turn and turn ~= self then
    if turn ~= '!' then
      local till = string.format('%.0f', math.floor(turnEnds / 1000))
      redis.call('ZADD', KEYS[1], till, turn, till, '__write__')
      redis.call('PEXPIREAT', KEYS[1], till)
    end
    return 1
  end
end
redis.pcall('ZREM', queue, self)
return { 2, attempt({ KEYS[1], KEYS[3] }, { ARGV[6], ARGV[7] }) }
`,
  );
}
