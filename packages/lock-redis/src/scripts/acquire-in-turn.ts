import { defineScript, type Script } from "../script.ts";
import { acquireScript } from "./acquire.ts";
import { acquireSharedScript } from "./acquire-shared.ts";
import { JOIN, PASS_TURN, QUEUE } from "./queue.ts";

/** Takes the write lock as the plain script does, unless others in line come before the caller. */
export const acquireInTurnScript: Script = inTurn(acquireScript);

/** Takes a read lock in the same way. Whoever is next in line is told, as it may be a reader too. */
export const acquireSharedInTurnScript: Script = inTurn(acquireSharedScript);

/** The plain script becomes a function, in which `KEYS` is what that script expects. */
function inTurn(plain: Script): Script {
  return defineScript(
    `
-- KEYS[1]  the lock
-- KEYS[2]  the line of those who wait for it
-- KEYS[3]  its fence counter, when a fencing token is asked for
-- ARGV[1]  the owner token
-- ARGV[2]  TTL, integral milliseconds
-- ARGV[3]  how long the caller has waited, integral microseconds
-- ARGV[4]  the caller's name in line
-- ARGV[5]  its name in the other kind
-- ARGV[6]  how often pollers have a turn, integral microseconds; 0 for never
-- Reply    { 0, ms } not now, the caller is in line: the turn or the last lease ends in so many ms, -1 for never;
--          else as the plain script
`,
    "local function attempt(KEYS)",
    plain.source,
    "end",
    QUEUE,
    `
local self, other, yieldUs = ARGV[4], ARGV[5], tonumber(ARGV[6])
local since = us - ARGV[3]
local shared = ${plain === acquireSharedScript}
local standing = redis.pcall('ZSCORE', queue, self)
local lined = redis.pcall('ZCARD', queue)
if type(lined) == 'number' and lined > 0 then
  redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
  -- The lock may be reserved for the caller: see hand-over.ts.
  if redis.pcall('ZREM', KEYS[1], self, other) == 1 then
    redis.call('ZREM', KEYS[1], '__write__')
  end
  local own = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
  local free
  if shared then
    free = not redis.pcall('ZSCORE', KEYS[1], '__write__')
  else
    free = redis.pcall('ZCARD', KEYS[1]) == 0
  end
  if free and not own then
    if not standing or tonumber(standing) >= 0 then
${JOIN}
    end
${PASS_TURN}
    if turn ~= self then
      return { 0, math.ceil((turnEnds - us) / 1000) }
    end
  end
end

local answer = attempt({ KEYS[1], KEYS[3] })
if answer == 0 then
${JOIN}
  local last = redis.pcall('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
  local ends = tonumber(last[2])
  return { 0, ends and ends < 9007199254740992 and math.ceil(ends - now) or -1 }
end
if answer == 1 or answer[1] == 1 then
  if lined ~= 0 then
    redis.pcall('ZREM', queue, self, other)
  end
  if shared then
    self = ''
${PASS_TURN}
  end
end
return answer
`,
  );
}
