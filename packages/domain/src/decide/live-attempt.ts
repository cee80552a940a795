import type { LiveAttemptState, NoneReason } from "../vocabulary.ts";
import { LIVE_ATTEMPT_STATES } from "../vocabulary.ts";
import { type Candidate, closedWindow, mismatchOf, type RunningVersion } from "./candidates.ts";
import type { Catalog } from "./catalog.ts";
import type { DeviceFacts, DeviceHistory, LiveAttempt } from "./facts.ts";

/** The device's open attempt, where there is one. */
export function liveAttemptOf(history: DeviceHistory): LiveAttempt | undefined {
  for (const record of history.records) {
    // Only the newest attempt of a record can be open.
    const attempt = record.attempts.at(-1);
    const state = LIVE_ATTEMPT_STATES.find((live) => live === attempt?.state);
    if (attempt !== undefined && state !== undefined) return { ...attempt, state, record };
  }
  return undefined;
}

/**
 * What a check does about an open attempt:
 * - `keep`: it is the answer;
 * - `hold`: it stays, but is not offered now;
 * - `supersede`: it gives way to a better offer;
 * - `cancel`: it ends, at once or once the device has answered;
 * - `await`: the device has been asked to stop and has not answered yet.
 */
export type LiveAction = "keep" | "hold" | "supersede" | "cancel" | "await";

/** How things stand for an open attempt, with the reason that a device is given where it gets nothing. */
export interface LiveSituation {
  readonly situation: "wanted" | "replaced" | "held" | "finished" | "withdrawn" | "refused";
  readonly reason: NoneReason;
}

type Phase = "waiting" | "fetching" | "committed" | "cancelling";

const PHASES: Readonly<Record<LiveAttemptState, Phase>> = {
  awaiting_confirmation: "waiting",
  offered: "waiting",
  downloading: "fetching",
  downloaded: "fetching",
  installing: "committed",
  installed: "committed",
  cancelling: "cancelling",
};

/** Before a device has begun, the best offer counts; then it is left to finish, except with what nobody should run. */
const ACTIONS: Readonly<Record<Phase, Readonly<Record<LiveSituation["situation"], LiveAction>>>> = {
  waiting: {
    wanted: "keep",
    replaced: "supersede",
    held: "hold",
    finished: "cancel",
    withdrawn: "cancel",
    refused: "cancel",
  },
  fetching: {
    wanted: "keep",
    replaced: "keep",
    held: "keep",
    finished: "keep",
    withdrawn: "cancel",
    refused: "cancel",
  },
  committed: {
    wanted: "keep",
    replaced: "keep",
    held: "keep",
    finished: "keep",
    withdrawn: "keep",
    refused: "keep",
  },
  cancelling: {
    wanted: "await",
    replaced: "await",
    held: "await",
    finished: "await",
    withdrawn: "await",
    refused: "await",
  },
};

/** What is to be done about an attempt in that state and situation. */
export function liveAction(state: LiveAttemptState, { situation }: LiveSituation): LiveAction {
  return ACTIONS[PHASES[state]][situation];
}

/** How things stand for the attempt, given what the device would be offered if it had none. */
export function liveSituation(live: LiveAttempt, context: LiveContext): LiveSituation {
  const situation = situationOf(live, context);
  // No pause brings it this firmware again.
  const ended = situation.reason === "BACKOFF" && live.cancelOutcome === "cancelled";
  return ended ? { ...situation, reason: "UPGRADE_CANCELLED" } : situation;
}

interface LiveContext {
  readonly device: DeviceFacts;
  readonly running: RunningVersion;
  readonly catalog: Catalog;
  readonly best: Candidate | undefined;
  /** Whether a rollout that ranks higher would take the device back from the attempt's. */
  readonly outranked: boolean;
  readonly now: Date;
}

function situationOf(live: LiveAttempt, context: LiveContext): LiveSituation {
  const { catalog, best } = context;
  const firmware = catalog.firmwareById.get(live.record.firmwareId);
  // A pause between the device's answer to a cancellation and the next offer is what it is told to expect.
  if (best?.firmware === firmware && firmware !== undefined) return { situation: "wanted", reason: "BACKOFF" };

  const offer = catalog.offers.find(({ rollout }) => rollout.id === live.rolloutId);
  if (firmware?.state !== "released" || offer === undefined || offer.rollout.state === "stopped") {
    return { situation: "withdrawn", reason: "NO_FIRMWARE" };
  }
  const { rollout } = offer;
  // The attempt may be on a step, not on what the rollout is for.
  const mismatch = mismatchOf({ ...offer, firmware }, context);
  // A device in the middle of an install may well say something strange about its version.
  const refused = mismatch !== undefined && mismatch !== "UNKNOWN_VERSION";
  if (refused) return { situation: "refused", reason: mismatch };
  if (best !== undefined) return { situation: "replaced", reason: "BACKOFF" };
  if (context.outranked) return { situation: "finished", reason: "OUTRANKED" };
  if (mismatch !== undefined) return { situation: "held", reason: mismatch };
  if (rollout.state === "paused") return { situation: "held", reason: "ROLLOUT_PAUSED" };
  if (rollout.state === "finished") return { situation: "finished", reason: "NO_FIRMWARE" };
  if (closedWindow(offer, context) !== undefined) return { situation: "held", reason: "WINDOW_CLOSED" };
  return { situation: "wanted", reason: "BACKOFF" };
}
