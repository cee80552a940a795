import type { DeviceAttempt, Report } from "@ota/domain";
import { actionOf, requireAction } from "./action.ts";
import { readText, refuseBody } from "./ddi-body.ts";
import { type Feedback, readFeedback } from "./feedback-body.ts";
import { withPatience } from "./patience.ts";
import { type DdiAnswer, type DdiRequest, ddiRoute } from "./route.ts";

/**
 * How a deployment goes. The last word is taken also of an action that is over: clients repeat it until they are answered
 * 2xx. Any other word is answered 410 then.
 */
export const deploymentFeedback = ddiRoute("POST", "/deploymentBase/{actionId}/feedback", {
  handle: (request) =>
    takeFeedback(request, {
      requireFit: ({ state }) => requireAction(state !== "awaiting_confirmation"),
      stateOf: deploymentState,
    }),
});

/** What comes of a cancellation. */
export const cancelFeedback = ddiRoute("POST", "/cancelAction/{actionId}/feedback", {
  handle: (request) =>
    takeFeedback(request, {
      requireFit: ({ state }) =>
        requireAction(
          state === "cancelling" || state === "cancelled" || state === "superseded" || state === "timed_out",
        ),
      stateOf: cancelState,
    }),
});

async function takeFeedback(
  request: DdiRequest,
  kind: {
    /** Throws where the action is in no state for it. */
    readonly requireFit: (action: DeviceAttempt) => void;
    readonly stateOf: (feedback: Feedback) => Report["state"];
  },
): Promise<DdiAnswer> {
  const { services, credentials, exchange } = request;
  const feedback = readFeedback(await readText(request, { leniently: true }));
  if (feedback === undefined) {
    return refuseBody(request, "Feedback needs a known status.execution and status.result.finished.");
  }
  const state = kind.stateOf(feedback);
  const { effect } = await withPatience(async () => {
    const action = await actionOf(request);
    kind.requireFit(action);
    return services.checks.recordReport({
      ...credentials,
      attemptId: action.id,
      report: reportOf(feedback, { state, action }),
    });
  });
  exchange.note({ reported: state, effect });
  return { status: 200 };
}

function reportOf(
  { progressPercent, code, details, deviceTime, unreadable }: Feedback,
  { state, action }: { readonly state: Report["state"]; readonly action: DeviceAttempt },
): Report {
  return {
    ...{ state, progressPercent, code, details, deviceTime, unreadable },
    // Why it failed is told last.
    ...(state === "failed" ? { message: details.findLast((line) => line.trim() !== "") } : {}),
    // DDI has no word for the version that runs: where no attribute tells it either, success means that it is this one.
    ...(state === "succeeded" && !action.tellsVersion ? { version: action.firmware.version } : {}),
  };
}

function deploymentState({ execution, finished }: Feedback): Report["state"] {
  switch (execution) {
    case "closed":
      return finished === "failure" ? "failed" : "succeeded";
    case "canceled":
      return "cancelled";
    case "rejected":
      // Kept as history: in hawkBit it is a warning.
      return "denied";
    case "downloaded":
      return "downloaded";
    default:
      // Clients say `proceeding` before they download and while they install: no more is known than that they have begun.
      return "downloading";
  }
}

function cancelState({ execution, finished }: Feedback): Report["state"] {
  switch (execution) {
    case "closed":
      return finished === "failure" ? "cancel_rejected" : "cancelled";
    case "rejected":
      return "cancel_rejected";
    case "canceled":
      return "cancelled";
    default:
      return "downloading";
  }
}
