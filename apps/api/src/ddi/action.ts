import { type DeviceAttempt, findAttemptForDevice } from "@ota/domain";
import { HttpProblem } from "../http/problems.ts";
import { noSuchAction } from "./refusals.ts";
import type { DdiRequest } from "./route.ts";

/**
 * The attempt that the address names as an action.
 *
 * @throws {HttpProblem} `REQUEST_INVALID` where the id is no number; OtaError `NOT_FOUND` where it is not this device's.
 */
export async function actionOf({ params: [id = ""], credentials, services }: DdiRequest): Promise<DeviceAttempt> {
  return findAttemptForDevice(services.db, { ...credentials, attemptId: actionIdOf(id) });
}

function actionIdOf(text: string): number {
  if (/^\d{1,19}$/.test(text)) return Number(text);
  throw new HttpProblem("REQUEST_INVALID", { detail: "An action id is an integer." });
}

/** Refuses an action that is not as the resource wants it. */
export function requireAction(isFit: boolean): void {
  if (!isFit) throw noSuchAction("This device has no such action, or none in the state that this resource is for.");
}
