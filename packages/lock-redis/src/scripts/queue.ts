import { CLOCK } from "./fragments.ts";

/**
 * The line of those who wait for a lock: a sorted set in `KEYS[2]`, beside the lock and never in it. Each store that waits
 * is one member, and its score says since when, in microseconds of the server's clock: now less the time that it has
 * waited by its own clock. Whose turn it is has the negative end of that turn for a score, so it stands first.
 *
 * | member | what it is | its turn |
 * |---|---|---|
 * | `+channel` | waits for a message by PUBLISH, whose count of receivers tells whether it lives | 100 ms |
 * | `*channel` | the same by SPUBLISH, on a Cluster | 100 ms |
 * | `-name` | hears nothing, and asks now and then | 200 ms |
 * | `!` | all who poll outside of the line, such as PHP; its score is when their turn is due | 120 ms |
 *
 * A turn is a reservation among those in line. Who does not use it loses its place. The one in line whose name is `self`
 * is the caller.
 */
export const QUEUE: string = `${CLOCK}
local us = time[1] * 1000000 + time[2]
local queue = KEYS[2]
`;

/**
 * Puts `self` in line as one that waits since `since`, without a turn. `other` is the caller's name in the other kind, which it may have
 * stood in line by before. Where pollers are to have a turn every `yieldUs`, sees to that as well. The line is forgotten a
 * minute after the last one got in.
 *
 * Something else under the key means that there is no line: then all go on by polling.
 */
export const JOIN = `
if other ~= '' then
  redis.pcall('ZREM', queue, other)
end
redis.pcall('ZADD', queue, string.format('%.0f', since), self)
if yieldUs > 0 then
  redis.pcall('ZADD', queue, 'NX', string.format('%.0f', us + yieldUs), '!')
end
redis.pcall('PEXPIREAT', queue, string.format('%.0f', now + 60000))
`;

/**
 * Gives the turn to the first in line, unless somebody has it, and sets `turn` to the one who has it and `turnEnds` to its
 * end; `turn` stays nil when nobody is in line. Only for a lock that is free. All but the caller get a message, the name of
 * the lock; those that nobody hears are dropped from the line, and so are those that let their turn pass.
 */
export const PASS_TURN = `
local turn, turnEnds
while true do
  local first = redis.pcall('ZRANGE', queue, '0', '0', 'WITHSCORES')
  local member = first[1]
  if not member then
    break
  end
  local score = tonumber(first[2])
  if score < 0 then
    if member == self or -score > us then
      turn, turnEnds = member, -score
      break
    end
    redis.call('ZREM', queue, member)
  else
    local kind = string.sub(member, 1, 1)
    local lasts = 100000
    local there = true
    if kind == '!' then
      if score > us then
        break
      end
      there = redis.call('ZCARD', queue) > 1
      lasts = 120000
    elseif kind == '-' then
      lasts = 200000
    elseif member ~= self then
      local heard = redis.pcall(kind == '*' and 'SPUBLISH' or 'PUBLISH', string.sub(member, 2), KEYS[1])
      there = heard ~= 0 -- Where the user may not publish, it has to find out by asking.
    end
    if there then
      turn, turnEnds = member, us + lasts
      redis.call('ZADD', queue, string.format('%.0f', -turnEnds), member)
      break
    end
    redis.call('ZREM', queue, member)
  end
end
`;
