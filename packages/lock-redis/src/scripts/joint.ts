import { defineScript, type Script } from "../script.ts";
import { acquireScript } from "./acquire.ts";
import { acquireInTurnScript, acquireSharedInTurnScript } from "./acquire-in-turn.ts";
import { acquireSharedScript } from "./acquire-shared.ts";
import { extendScript } from "./extend.ts";
import { CLOCK, TILL } from "./fragments.ts";
import { releaseInTurnScript } from "./release-in-turn.ts";

/** The scripts that may be parts of a joint call, and the letter of each: those that many locks want in one moment. */
export const JOINT_LETTERS: ReadonlyMap<Script, string> = new Map([
  [acquireScript, "a"],
  [acquireSharedScript, "s"],
  [acquireInTurnScript, "w"],
  [acquireSharedInTurnScript, "x"],
  [extendScript, "e"],
  [releaseInTurnScript, "r"],
]);

/**
 * Runs several scripts on locks of their own, one after the other. They are one for the server, so all go by one clock;
 * but for their callers each is alone: what one of them fails with is its own reply, and the others go on.
 */
export const jointScript: Script = defineScript(
  `
-- KEYS     the keys of each part, in turn
-- ARGV[1]  three characters for each part: its letter, how many keys it has, how many arguments
-- ARGV[2]  and on: the arguments of each part, in turn
-- Reply    { reply or error of each part }
`,
  CLOCK,
  `
local nowText = string.format('%.0f', now)
local ends = {}
local function endAfter(ttl)
  if not ends[ttl] then
`,
  TILL.replace("ARGV[2]", "ttl"),
  `
    ends[ttl] = till
  end
  return ends[ttl]
end
local call, try, byte, unpack, pcall = redis.call, redis.pcall, string.byte, unpack, pcall
local scripts = {}
`,
  ...[...JOINT_LETTERS].flatMap(([script, letter]) => [
    `scripts[${letter.charCodeAt(0)}] = function(KEYS, ARGV)`,
    partOf(script),
    "end",
  ]),
  `
local parts, replies = ARGV[1], {}
local key, arg = 1, 2
for part = 1, #parts / 3 do
  local letter, keys, args = byte(parts, part * 3 - 2, part * 3)
  local nextKey, nextArg = key + keys - 48, arg + args - 48
  local ran, reply = pcall(scripts[letter], { unpack(KEYS, key, nextKey - 1) }, { unpack(ARGV, arg, nextArg - 1) })
  if not ran then
    local text = type(reply) == 'table' and reply.err or tostring(reply)
    reply = { err = string.find(text, '^%u+ ') and text or 'ERR ' .. text }
  end
  replies[part] = reply
  key, arg = nextKey, nextArg
end
return replies
`,
);

/** The script without what is the same for all parts, which is worked out once, and with locals in place of globals. */
function partOf({ source }: Script): string {
  return source
    .replaceAll(CLOCK.trim(), "")
    .replaceAll(TILL.trim(), "local till = endAfter(ARGV[2])")
    .replaceAll("string.format('%.0f', now)", "nowText")
    .replaceAll("redis.call(", "call(")
    .replaceAll("redis.pcall(", "try(");
}
