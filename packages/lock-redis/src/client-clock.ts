import type { RedisClient } from "./redis-client.ts";
import { defineScript, type Script, type ScriptCall } from "./script.ts";

/** For so long a server is not asked again: PHP, whose processes are short-lived, notices an upgrade of it as soon. */
const RECHECK_MS = 60_000;

/** Until when each client's scripts get the time from this process. */
const untilByClient = new WeakMap<RedisClient, number>();
const warned = new WeakSet<RedisClient>();

/**
 * The replies of servers whose scripts cannot ask for the time: Redis before 5, ElastiCache serverless, and any that does
 * not know TIME. The first two are those by which symfony/lock finds it out. A user who may not ask (NOPERM) is not meant:
 * others at the same server may.
 */
const REFUSED = /commands not allowed after non deterministic|is not allowed from script|Unknown Redis command called/;

/** Whether it may be TIME that was refused. All scripts ask for the time before they write, so nothing was written. */
export function mayRefuseTime(error: unknown): boolean {
  return error instanceof Error && REFUSED.test(error.message);
}

export function goesByClientClock(client: RedisClient): boolean {
  const until = untilByClient.get(client);
  return until !== undefined && performance.now() < until;
}

/** To be called when a script went through with this process's time, but not without. */
export function goByClientClock(client: RedisClient): void {
  untilByClient.set(client, performance.now() + RECHECK_MS);
  if (warned.has(client)) return;
  warned.add(client);
  process.emitWarning(
    "The Redis server refuses TIME in scripts: leases go by the clocks of the processes that ask, which must agree.",
    { code: "LOCK_CLIENT_CLOCK" },
  );
}

/** The same call, with this process's time in place of the server's. */
export function withClientTime(call: ScriptCall): ScriptCall {
  const nowMs = Date.now();
  // The end of that millisecond, as no lease may be shorter than its TTL by a part of it.
  const time = [String(Math.floor(nowMs / 1000)), String((nowMs % 1000) * 1000 + 999)];
  return {
    ...call,
    script: clientTimed(call.script),
    args: [...call.args, ...time],
    get abandoned() {
      return call.abandoned;
    },
  };
}

const clientTimedScripts = new WeakMap<Script, Script>();

/** The script with what TIME would reply as its last two arguments, seconds and microseconds. */
function clientTimed(script: Script): Script {
  const known = clientTimedScripts.get(script);
  if (known !== undefined) return known;
  const timed = defineScript(
    "local clientTime = { ARGV[#ARGV - 1], ARGV[#ARGV] }",
    script.source.replaceAll("redis.call('TIME')", "clientTime"),
  );
  clientTimedScripts.set(script, timed);
  return timed;
}
