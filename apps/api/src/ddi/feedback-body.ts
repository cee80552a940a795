import { SERVICE_NOTE } from "@ota/domain";
import { asObject, parseLeniently } from "./ddi-body.ts";

export const EXECUTIONS = [
  "closed",
  "proceeding",
  "canceled",
  "scheduled",
  "rejected",
  "resumed",
  "download",
  "downloaded",
] as const;
export type Execution = (typeof EXECUTIONS)[number];

const RESULTS = ["success", "failure", "none"] as const;

/** What a device says about an action. */
export interface Feedback {
  readonly execution: Execution;
  readonly finished: (typeof RESULTS)[number];
  readonly progressPercent: number | undefined;
  readonly code: number | undefined;
  readonly details: readonly string[];
  readonly deviceTime: Date | undefined;
  /** Known members that hold something else than they should. */
  readonly unreadable: readonly string[];
}

/**
 * Reads feedback as leniently as can be, since it may be a device's last word: unknown and ill-typed members are ignored
 * (of the known ones it is told which), control characters are taken, and of a body that is no JSON at all the two words
 * that count are salvaged.
 *
 * @returns `undefined` where one of these two is not there or is none that is known.
 */
export function readFeedback(text: string): Feedback | undefined {
  const parsed = parseLeniently(text);
  return parsed === undefined ? salvaged(text) : ofBody(asObject(parsed) ?? {});
}

function ofBody(body: Readonly<Record<string, unknown>>): Feedback | undefined {
  const status = asObject(body["status"]);
  const result = asObject(status?.["result"]);
  const execution = EXECUTIONS.find((known) => known === status?.["execution"]);
  const finished = RESULTS.find((known) => known === result?.["finished"]);
  if (execution === undefined || finished === undefined) return undefined;
  const unreadable: string[] = [];
  const read = <Value>(name: string, given: unknown, as: (given: unknown) => Value | undefined): Value | undefined => {
    const value = given == null ? undefined : as(given);
    if (given != null && value === undefined) unreadable.push(name);
    return value;
  };
  const progressPercent = read("progress", result?.["progress"], percentOf);
  const code = read("code", status?.["code"], (given) => (typeof given === "number" ? given : undefined));
  const lines = read("details", status?.["details"], (given) => (Array.isArray(given) ? given : undefined)) ?? [];
  const details = textsOf(lines);
  if (details.length < lines.length) unreadable.push("details");
  const deviceTime = read("timestamp", body["timestamp"], timeOf);
  return { execution, finished, progressPercent, code, details, deviceTime, unreadable };
}

function salvaged(text: string): Feedback | undefined {
  const execution = EXECUTIONS.find((known) => known === /"execution"\s*:\s*"(\w+)"/.exec(text)?.[1]);
  const finished = RESULTS.find((known) => known === /"finished"\s*:\s*"(\w+)"/.exec(text)?.[1]);
  if (execution === undefined || finished === undefined) return undefined;
  const details = [`${SERVICE_NOTE}The device's feedback was no JSON; only its status could be read.`];
  const nothing = { progressPercent: undefined, code: undefined, deviceTime: undefined, unreadable: [] };
  return { execution, finished, details, ...nothing };
}

/** The lines that are texts. */
export function textsOf(lines: unknown): readonly string[] {
  return Array.isArray(lines) ? lines.filter((line) => typeof line === "string") : [];
}

function percentOf(progress: unknown): number | undefined {
  const { cnt, of } = asObject(progress) ?? {};
  return typeof cnt === "number" && typeof of === "number" && of > 0 ? (100 * cnt) / of : undefined;
}

/** Milliseconds since 1970; what no Date holds counts as none. */
function timeOf(timestamp: unknown): Date | undefined {
  const time = typeof timestamp === "number" ? new Date(timestamp) : undefined;
  return time === undefined || Number.isNaN(time.getTime()) ? undefined : time;
}
