/**
 * The steps that several scripts share, as statements to be joined: a script begins with {@link PRUNE} and may end with
 * {@link ARM}. They are statements rather than Lua functions because those would be made anew by every call, which costs
 * about a tenth of a script's time.
 *
 * The layout is that of symfony/lock's RedisStore: one sorted set per lock, a member per holder, its score the end of its
 * lease in integral milliseconds since 1970, and the member `__write__` for as long as the lock is a write lock.
 * Scores are written as digits without fraction or exponent, since symfony/lock hands them to PEXPIREAT as they are.
 */

/** Sets `now`: the server's time in integral milliseconds. Where TIME is refused, `client-clock.ts` takes its place. */
export const CLOCK = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Sets `till`: the score of a lease with the TTL `ARGV[2]`. Rounded up, so that no lease is shorter than its TTL, not even
 * by the part of a millisecond that `now` lacks: its holder counts from before its request, which may have taken less.
 */
export const TILL = `
local till = string.format('%.0f', math.ceil(time[1] * 1000 + time[2] / 1000) + ARGV[2])
`;

/**
 * Returns from the script when `answer` is the refusal of a command. A string under the key is somebody else's lock
 * (symfony/lock before 5.2, or SET NX), so the reply is 0. Data of another type is named: { type }. All else is an error.
 */
export const FOREIGN = `
if type(answer) == 'table' then
  if not string.find(answer.err, 'WRONGTYPE', 1, true) then
    return answer
  end
  local found = redis.call('TYPE', KEYS[1]).ok
  if found == 'string' then
    return 0
  end
  return { found }
end
`;

/**
 * Sets `now` and removes the holders whose lease has ended, or returns what {@link FOREIGN} says. Every writing script
 * begins with it: it is the check of the type, and a first write that a server at its memory limit still allows, which
 * lets the writes after it pass as well.
 */
export const PRUNE: string = `${CLOCK}
local answer = redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
${FOREIGN}`;

/**
 * Makes the key expire with its last holder. Scores that no symfony/lock writes are rounded up, and a key with a holder
 * that never ends (inf, or beyond 2^53) never expires.
 */
export const ARM = `
local last = redis.call('ZRANGE', KEYS[1], '-1', '-1', 'WITHSCORES')
local highest = tonumber(last[2])
if highest and highest < 9007199254740992 then
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.ceil(highest)))
elseif highest then
  redis.call('PERSIST', KEYS[1])
end
`;

/**
 * Sets `counter` to the lock's latest fencing token, when there is one and the script was given `KEYS[2]`. Comes before
 * the script's own writes, as it returns when something else lies under that key: { type, KEYS[2] }.
 */
export const READ_FENCE = `
local counter
if KEYS[2] then
  local kept = redis.pcall('GET', KEYS[2])
  if type(kept) == 'table' then
    if not string.find(kept.err, 'WRONGTYPE', 1, true) then
      return kept
    end
    return { redis.call('TYPE', KEYS[2]).ok, KEYS[2] }
  end
  if kept then
    counter = string.find(kept, '^%d+$') and tonumber(kept)
    if not counter or counter >= 9007199254740991 then
      return { 'string', KEYS[2] }
    end
  end
end
`;

/**
 * Returns { 1, token } from a script that was given `KEYS[2]`, after {@link READ_FENCE}. A new token is minted when the
 * script has set `minting`, or when there is none: the server's time in microseconds, or one more than the latest token
 * where time has not gone on. So tokens go on growing when the counter is lost. Such a number is 1.8e15, exact in Lua
 * (below 2^53 until the year 2255), but must be printed by `%.0f`.
 *
 * The counter is kept for seven days beyond the lease's TTL (`ARGV[2]`). After that a token could be too small only if the
 * server's clock went back by more than seven days.
 */
export const GRANT_FENCE = `
if KEYS[2] then
  if minting or not counter then
    counter = math.max((counter or 0) + 1, time[1] * 1000000 + time[2])
  end
  local token = string.format('%.0f', counter)
  redis.call('SET', KEYS[2], token, 'PX', string.format('%.0f', ARGV[2] + 604800000))
  return { 1, token }
end
`;
