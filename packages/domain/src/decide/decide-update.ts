import { nextState } from "../attempts/transitions.ts";
import type { NoneReason } from "../vocabulary.ts";
import { type Candidate, evaluateCandidates, runningVersion } from "./candidates.ts";
import type { Catalog } from "./catalog.ts";
import type { DeviceFacts, DeviceHistory, LiveAttempt, RolloutPlaces } from "./facts.ts";
import { liveAction, liveAttemptOf, liveSituation } from "./live-attempt.ts";
import type { Opening } from "./window.ts";

export interface DecideInput {
  readonly device: DeviceFacts;
  readonly history: DeviceHistory;
  readonly catalog: Catalog;
  /** How many places are taken in the running rollouts that count them. */
  readonly places: ReadonlyMap<bigint, RolloutPlaces>;
  /** The database's time: attempts were closed by the same clock. */
  readonly now: Date;
}

/** What a check comes to. Never nothing: without an update there is a reason. */
export type Decision =
  | {
      /** The open attempt is the answer. */
      readonly outcome: "continue";
      readonly live: LiveAttempt;
    }
  | {
      /** An attempt is to be opened for the first of these that can be had. */
      readonly outcome: "offer";
      readonly candidates: readonly [Candidate, ...Candidate[]];
      readonly ends: EndOfAttempt | undefined;
    }
  | {
      readonly outcome: "none";
      readonly reason: NoneReason;
      readonly ends: EndOfAttempt | undefined;
      /** The device is being asked to stop this attempt. */
      readonly stopping: LiveAttempt | undefined;
      /** The next time at which an offer that is meant for the device opens by itself. */
      readonly opening: Opening | undefined;
    };

/** The open attempt is to receive this event first. */
export interface EndOfAttempt {
  readonly live: LiveAttempt;
  readonly event: "cancel" | "supersede";
}

/**
 * Decides what a device gets. Pure: the same facts give the same decision, whatever their order. No rule about updates
 * exists anywhere else.
 *
 * Without an update the reason is that of the best-ranked offer which is meant for this device, so that a device which
 * waits for a paused rollout hears of the pause, not of another channel's firmware; where none is meant for it, that of
 * the best-ranked one. An offer that is refused on several grounds gives the first in the order of `NONE_REASONS`.
 */
export function decideUpdate({ device, history, catalog, places, now }: DecideInput): Decision {
  const live = liveAttemptOf(history);
  if (device.blocked) return none("DEVICE_BLOCKED", live?.state === "cancelling" ? { stopping: live } : {});

  const running = runningVersion(device, catalog);
  const liveFirmwareId = live?.record.firmwareId;
  const input = { device, running, history, catalog, places, now, liveFirmwareId };
  const candidates = evaluateCandidates(catalog.openOffers, input);
  const opening = nextOpening(candidates);
  const [best, ...others] = candidates.filter(({ refusal }) => refusal === undefined);
  if (live === undefined) return offerOrNone();

  const outranked = candidates.some(({ rollout, refusal }) => rollout.id === live.rolloutId && refusal === "OUTRANKED");
  const situation = liveSituation(live, { device, running, catalog, best, outranked, now });
  const action = liveAction(live.state, situation);
  switch (action) {
    case "keep":
      return { outcome: "continue", live };
    case "hold":
      return none(situation.reason, { opening });
    case "await":
      return none(situation.reason, { stopping: live, opening });
    case "supersede":
      return offerOrNone({ live, event: action });
    case "cancel":
      // Once the device has begun, it has to answer before anything else can be offered.
      return endsAtOnce(live, catalog)
        ? offerOrNone({ live, event: action })
        : none(situation.reason, { ends: { live, event: action }, stopping: live, opening });
  }

  function offerOrNone(ends?: EndOfAttempt): Decision {
    if (best !== undefined) return { outcome: "offer", candidates: [best, ...others], ends };
    return none(reasonOf(candidates), { ends, opening });
  }
}

function endsAtOnce(live: LiveAttempt, { confirmBy }: Catalog): boolean {
  const next = nextState({ state: live.state, cancelOutcome: live.cancelOutcome, confirmBy }, "cancel");
  return next.effect === "moved" && next.state === "cancelled";
}

function none(
  reason: NoneReason,
  more: {
    readonly ends?: EndOfAttempt | undefined;
    readonly stopping?: LiveAttempt | undefined;
    readonly opening?: Opening | undefined;
  },
): Decision {
  const { ends, stopping, opening } = more;
  return { outcome: "none", reason, ends, stopping, opening };
}

function nextOpening(candidates: readonly Candidate[]): Opening | undefined {
  const openings = candidates.flatMap(({ meant, opening }) => (meant && opening !== undefined ? [opening] : []));
  return openings.sort((a, b) => a.opensAt.getTime() - b.opensAt.getTime())[0];
}

/** The reason of a decision without an update, of candidates in their rank that are all refused. */
function reasonOf(candidates: readonly Candidate[]): NoneReason {
  const open = candidates.filter(({ meant, refusal }) => meant || refusal !== "NO_FIRMWARE");
  return (open.find(({ meant }) => meant) ?? open[0])?.refusal ?? "NO_FIRMWARE";
}
