import { defineScript, type Script } from "../script.ts";
import { CLOCK } from "./fragments.ts";

/**
 * Says how the lock is held and for how long, without the owner tokens. Writes nothing. A string is somebody else's lock,
 * held exclusively; so is a marker without an owner.
 */
export const inspectScript: Script = defineScript(
  `
-- KEYS[1]  the lock
-- Reply    { mode, remaining milliseconds of each holder }: the mode is free, exclusive or shared, and -1 stands for a
--          lease without end; { type } for data that is no lock
local found = redis.call('TYPE', KEYS[1]).ok
if found == 'string' then
  return { 'exclusive', { redis.call('PTTL', KEYS[1]) } }
elseif found ~= 'zset' and found ~= 'none' then
  return { found }
end
`,
  CLOCK,
  `
-- Rounded down, as the ends of leases are rounded up: no more is left of a lease than it was given.
local exact = time[1] * 1000 + time[2] / 1000
local members = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local holders = {}
local markerLeft
for i = 1, #members, 2 do
  local score = tonumber(members[i + 1])
  local left = score < 9007199254740992 and math.max(0, math.floor(score - exact)) or -1
  if score <= now then
    -- Lapsed, and not pruned yet.
  elseif members[i] == '__write__' then
    markerLeft = left
  else
    holders[#holders + 1] = left
  end
end
if markerLeft then
  return { 'exclusive', #holders > 0 and holders or { markerLeft } }
end
return { #holders > 0 and 'shared' or 'free', holders }
`,
);
