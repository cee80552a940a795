import type { Script } from "./script.ts";

/** One EVALSHA or EVAL. */
export interface ScriptCommand {
  readonly name: "evalsha" | "eval";
  readonly script: Script;
  readonly keys: readonly [string, ...string[]];
  readonly args: readonly string[];
}

/** What is told of an answer. */
export interface Answered {
  resolve(reply: unknown): void;
  reject(error: unknown): void;
}

/** A command that waits for the end of the tick, and then for its answer. */
export interface WaitingCommand extends ScriptCommand, Answered {}
