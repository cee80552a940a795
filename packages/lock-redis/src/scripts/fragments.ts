/**
 * The steps that several scripts share, as local Lua functions. The layout is that of symfony/lock's RedisStore: one
 * sorted set per lock, a member per holder, its score the end of its lease in integral milliseconds since 1970, and the
 * member `__write__` for as long as the lock is a write lock.
 */

/**
 * `now()`: the server's time in integral milliseconds. `integral(ms)`: the same as digits without fraction or exponent,
 * since symfony/lock reads scores back as text and hands them to PEXPIREAT.
 */
export const CLOCK = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function integral(ms)
  return string.format('%.0f', ms)
end
`;

/**
 * `foreign(refusal, key)`: the reply to give when a command on the key was refused. A string is somebody else's lock
 * (symfony/lock before 5.2, or SET NX), so the answer is 0. Data of another type is named: { type }. All else is an error.
 */
export const FOREIGN = `
local function foreign(refusal, key)
  if not string.find(refusal.err, 'WRONGTYPE', 1, true) then
    return refusal
  end
  local found = redis.call('TYPE', key).ok
  if found == 'string' then
    return 0
  end
  return { found }
end
`;

/**
 * `prune(key, at)`: removes the holders whose lease has ended; returns a reply when the key holds something else. Every
 * writing script begins with it: it is the check of the type, and a first write that a server at its memory limit still
 * allows, which lets the writes after it pass as well.
 */
export const PRUNE = `
local function prune(key, at)
  local pruned = redis.pcall('ZREMRANGEBYSCORE', key, '-inf', integral(at))
  if type(pruned) == 'table' then
    return foreign(pruned, key)
  end
  return nil
end
`;

/**
 * `arm(key)`: makes the key expire with its last holder. Scores that no symfony/lock writes are rounded up, and a key
 * with a holder that never ends (inf, or beyond 2^53) never expires.
 */
export const ARM = `
local function arm(key)
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  local till = tonumber(last[2])
  if not till then
    return
  end
  if till < 9007199254740992 then
    redis.call('PEXPIREAT', key, integral(math.ceil(till)))
  else
    redis.call('PERSIST', key)
  end
end
`;
