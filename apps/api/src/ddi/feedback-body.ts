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
}

/**
 * Reads feedback as leniently as can be, since it may be a device's last word: unknown and ill-typed members are ignored,
 * control characters are taken, and of a body that is no JSON at all the two words that count are salvaged.
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
  const { code, details } = status ?? {};
  return {
    ...{ execution, finished, progressPercent: percentOf(asObject(result?.["progress"])) },
    code: typeof code === "number" ? code : undefined,
    details: Array.isArray(details) ? details.filter((line) => typeof line === "string") : [],
    deviceTime: timeOf(body["timestamp"]),
  };
}

function salvaged(text: string): Feedback | undefined {
  const execution = EXECUTIONS.find((known) => known === /"execution"\s*:\s*"(\w+)"/.exec(text)?.[1]);
  const finished = RESULTS.find((known) => known === /"finished"\s*:\s*"(\w+)"/.exec(text)?.[1]);
  if (execution === undefined || finished === undefined) return undefined;
  const details = ["Update Server: The device's feedback was no JSON; only its status could be read."];
  return { execution, finished, progressPercent: undefined, code: undefined, details, deviceTime: undefined };
}

function percentOf(progress: Readonly<Record<string, unknown>> | undefined): number | undefined {
  const { cnt, of } = progress ?? {};
  return typeof cnt === "number" && typeof of === "number" && of > 0 ? (100 * cnt) / of : undefined;
}

/** Milliseconds since 1970; what no Date holds counts as none. */
function timeOf(timestamp: unknown): Date | undefined {
  const time = typeof timestamp === "number" ? new Date(timestamp) : undefined;
  return time === undefined || Number.isNaN(time.getTime()) ? undefined : time;
}
