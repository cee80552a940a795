import { attemptMessages, type DeviceAttempt, isOpen, OtaError, SERVICE_NOTE } from "@ota/domain";
import { actionOf, requireAction } from "./action.ts";
import { artifactView } from "./artifact-view.ts";
import { type DdiRequest, ddiRoute } from "./route.ts";

/** hawkBit's limit of messages in an action's history. */
const MAX_MESSAGES = 100;

/** What is to be installed. The first time, the device has taken it up: from then on it has to be asked to stop. */
export const deploymentBase = ddiRoute("GET", "/deploymentBase/{actionId}", {
  async handle(request) {
    const action = await actionOf(request);
    const { state } = action;
    requireAction(state !== "awaiting_confirmation" && state !== "cancelling");
    requireAction(state !== "cancelled" && state !== "superseded");
    // Withdrawn: the next poll takes it back.
    requireAction(action.fetchable || !isOpen(state));
    if (state === "offered") await takeUp(action, request);
    return { status: 200, body: await deploymentBody("deployment", action, request) };
  },
});

/** What was installed. */
export const installedBase = ddiRoute("GET", "/installedBase/{actionId}", {
  async handle(request) {
    const action = await actionOf(request);
    requireAction(!isOpen(action.state) && action.state !== "cancelled" && action.state !== "superseded");
    return { status: 200, body: await deploymentBody("deployment", action, request) };
  },
});

async function takeUp(
  { id: attemptId }: DeviceAttempt,
  { services: { checks }, credentials }: DdiRequest,
): Promise<void> {
  const report = { state: "downloading", message: `${SERVICE_NOTE}The device has fetched the deployment.` } as const;
  try {
    await checks.recordReport({ ...credentials, attemptId, report, movesOnly: true });
  } catch (error) {
    // Ended in this very moment.
    requireAction(!(error instanceof OtaError && error.code === "ATTEMPT_CLOSED"));
    throw error;
  }
}

/**
 * The body of an action: `deployment`, or `confirmation` where it is one to agree to. There is one chunk with one artifact,
 * which is all that some clients take. Neither word is ever `skip`: some clients take that for done.
 */
export async function deploymentBody(
  member: "deployment" | "confirmation",
  action: DeviceAttempt,
  request: DdiRequest,
): Promise<object> {
  const { firmware, product } = action;
  const baseUrl = action.fetchable ? request.baseUrl : undefined;
  const artifact = artifactView(firmware, { firmwareId: firmware.id, baseUrl });
  // `bApp` is what Zephyr insists on, and all the same to the others.
  const chunk = { part: "bApp", version: firmware.version, name: product, artifacts: [artifact] };
  return {
    id: String(action.id),
    [member]: { download: "forced", update: "forced", chunks: [chunk] },
    ...(await history(action, request)),
  };
}

async function history({ id: attemptId, state }: DeviceAttempt, { exchange, services: { db } }: DdiRequest) {
  const query = new URLSearchParams(exchange.request.url?.split("?")[1]);
  const wanted = Number(query.get("actionHistory") ?? 0);
  if (!Number.isInteger(wanted) || wanted === 0) return {};
  const limit = wanted < 0 ? MAX_MESSAGES : Math.min(wanted, MAX_MESSAGES);
  const all = await attemptMessages(db, { attemptId, limit: MAX_MESSAGES });
  const messages = all.filter((message) => !message.startsWith(SERVICE_NOTE)).slice(0, limit);
  return messages.length === 0 ? {} : { actionHistory: { status: historyStatus(state), messages } };
}

function historyStatus(state: DeviceAttempt["state"]): string {
  switch (state) {
    case "succeeded":
      return "FINISHED";
    case "failed":
    case "timed_out":
      return "ERROR";
    case "awaiting_confirmation":
      return "WAIT_FOR_CONFIRMATION";
    case "cancelling":
      return "CANCELING";
    case "cancelled":
    case "superseded":
      return "CANCELED";
    default:
      return "RUNNING";
  }
}
