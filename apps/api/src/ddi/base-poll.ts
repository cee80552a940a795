import type { CheckAnswer } from "@ota/domain";
import { problemOf } from "../http/problem-of.ts";
import { type DdiAnswer, type DdiRequest, ddiRoute } from "./route.ts";

/** "Is there something for me?": the check of the native API, which also registers a gateway's unknown device. */
export const basePoll = ddiRoute("GET", "", {
  refusable: true,
  whenBusy: busyAnswer,
  async handle(request) {
    const { services, credentials, exchange } = request;
    try {
      const answer = await services.checks.checkForUpdate(credentials);
      exchange.note({ deviceId: answer.device.id, decision: answer.decision === "none" ? answer.reason : answer.how });
      const links = linksOf(answer, request);
      return {
        status: 200,
        body: { ...config(answer.pollAfterSeconds), ...links },
        // Without the time to sleep, which is another one at each poll.
        tagged: links,
      };
    } catch (error) {
      const busy = busyAnswer(error);
      if (busy === undefined) throw error;
      exchange.note({ decision: "SERVICE_BUSY" });
      return busy;
    }
  },
});

/** hawkBit's own least; some clients count in it. */
const LEAST_SLEEP_SECONDS = 30;

/**
 * The answer while the service is busy: nothing to do, and a short sleep. An error would make some clients wait for minutes,
 * and this one tells nobody anything.
 */
function busyAnswer(error: unknown): DdiAnswer | undefined {
  const { code, members, headers } = problemOf(error);
  if (code !== "SERVICE_BUSY") return undefined;
  const told = Number(members["retryAfterSeconds"] ?? headers["Retry-After"] ?? 0);
  return { status: 200, body: config(Math.max(LEAST_SLEEP_SECONDS, told)), tagged: {} };
}

function config(seconds: number) {
  return { config: { polling: { sleep: sleepText(seconds) } } };
}

/** HH:MM:SS below 24 hours: clients reject anything else, and with it the whole answer. */
export function sleepText(seconds: number): string {
  const bounded = Math.min(Math.max(Math.round(seconds), 0), 86_399);
  const parts = [bounded / 3600, (bounded / 60) % 60, bounded % 60];
  return parts.map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
}

function linksOf(answer: CheckAnswer, { baseUrl }: DdiRequest) {
  const link = (resource: string) => ({ href: `${baseUrl}/${resource}` });
  const { installedAttemptId: installed, attributesWanted } = answer;
  // A device that has installed and is to show its version by its attributes.
  const shows = answer.decision === "update" && answer.attempt.state === "installed";
  const _links = {
    ...actionLink(answer, link),
    ...(installed === undefined ? {} : { installedBase: link(`installedBase/${installed}`) }),
    ...(attributesWanted || shows ? { configData: link("configData") } : {}),
  };
  return Object.keys(_links).length === 0 ? {} : { _links };
}

function actionLink(answer: CheckAnswer, link: (resource: string) => { readonly href: string }) {
  if (answer.decision === "none") {
    const { stopping } = answer;
    return stopping === undefined ? {} : { cancelAction: link(`cancelAction/${stopping.id}`) };
  }
  const { id, state } = answer.attempt;
  if (state === "awaiting_confirmation") return { confirmationBase: link(`confirmationBase/${id}`) };
  // It has said that it is done: shown the link, it would install once more.
  return state === "installed" ? {} : { deploymentBase: link(`deploymentBase/${id}`) };
}
