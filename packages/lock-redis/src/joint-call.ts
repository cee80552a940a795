import type { RedisClient } from "./redis-client.ts";
import { JOINT_LETTERS, jointScript } from "./scripts/joint.ts";
import type { WaitingCommand } from "./waiting-command.ts";

/** So many parts hold up the server for less than a millisecond. */
export const MOST_PARTS = 64;

/** Refusals of a joint call that need not hold for each of its parts; they come before anything is carried out. */
const REFUSED_TOGETHER = /^(?:NOPERM|CROSSSLOT|MOVED|ASK|TRYAGAIN|CLUSTERDOWN)\b/;

/** Clients whose keys cannot be had in one call: they talk to a node of a Cluster. */
const separate = new WeakSet<RedisClient>();

/**
 * The same commands, where those that follow each other and may be parts of one call are one: what a command costs the
 * client and the server besides its own work is then shared by all of them. Each is told its own reply or error.
 *
 * `sendAlone` is for the parts of a call that was refused for what is not in all of them, such as one key.
 */
export function joined(
  client: RedisClient,
  commands: readonly WaitingCommand[],
  sendAlone: (part: WaitingCommand) => void,
): readonly WaitingCommand[] {
  if (commands.length < 2 || separate.has(client)) return commands;
  const result: WaitingCommand[] = [];
  let run: WaitingCommand[] = [];
  const endRun = (): void => {
    const [only, second] = run;
    if (only !== undefined) result.push(second === undefined ? only : jointCommand(client, run, sendAlone));
    run = [];
  };
  for (const command of commands) {
    const isPart = JOINT_LETTERS.has(command.script);
    if (!isPart || run.length === MOST_PARTS || run[0]?.name !== command.name) endRun();
    if (isPart) run.push(command);
    else result.push(command);
  }
  endRun();
  return result;
}

function jointCommand(
  client: RedisClient,
  parts: readonly WaitingCommand[],
  sendAlone: (part: WaitingCommand) => void,
): WaitingCommand {
  const [first] = parts as readonly [WaitingCommand, ...WaitingCommand[]];
  const keys: [string, ...string[]] = [...first.keys];
  const args: string[] = [""];
  for (const part of parts) {
    args[0] += `${JOINT_LETTERS.get(part.script)}${part.keys.length}${part.args.length}`;
    if (part !== first) keys.push(...part.keys);
    args.push(...part.args);
  }
  return {
    name: first.name,
    script: jointScript,
    keys,
    args,
    resolve: (replies) => {
      for (const [index, part] of parts.entries()) {
        const reply = Array.isArray(replies) ? replies[index] : replies;
        if (reply instanceof Error) part.reject(reply);
        else part.resolve(reply);
      }
    },
    reject: (error) => {
      const together = error instanceof Error ? REFUSED_TOGETHER.exec(error.message)?.[0] : undefined;
      if (together !== undefined && together !== "NOPERM") separate.add(client);
      for (const part of parts) {
        if (together === undefined) part.reject(error);
        else sendAlone(part);
      }
    },
  };
}
