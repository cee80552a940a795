import { and, eq, ne } from "drizzle-orm";
import type { Database } from "./database.ts";
import { firmware, rollouts } from "./schema/index.ts";
import type { NoneReason } from "./vocabulary.ts";

/** What an operator can do about a check that comes to none. One statement for `NO_FIRMWARE`, else none. */
export async function adviceOn(
  db: Database,
  reason: NoneReason,
  input: {
    readonly productId: bigint;
    /** Whether an open rollout leads nowhere for this device, as the version is missing that its firmware requires. */
    readonly lacksStep: boolean;
    /** Whether a rollout that is meant for the device is kept from it by one that ranks higher. */
    readonly outranked: boolean;
    /** Whether the device is being asked to stop its open attempt. */
    readonly stopping: boolean;
  },
): Promise<string> {
  const advice = input.outranked ? ADVICE.OUTRANKED : await adviceOnReason(db, reason, input);
  if (!input.stopping) return advice;
  return `The device is asked to stop its open attempt, which ends with its answer, or when it has been silent for too long. Then: ${advice}`;
}

async function adviceOnReason(
  db: Database,
  reason: NoneReason,
  input: { readonly productId: bigint; readonly lacksStep: boolean },
): Promise<string> {
  if (reason !== "NO_FIRMWARE") return ADVICE[reason];
  if (input.lacksStep) {
    return "The offered firmware requires a version that no released firmware brings the device to: release that step. It needs no rollout.";
  }
  const found = await db
    .selectDistinct({ firmware: firmware.state, rollout: rollouts.state })
    .from(firmware)
    .leftJoin(rollouts, and(eq(rollouts.firmwareId, firmware.id), eq(rollouts.state, "draft")))
    .where(and(eq(firmware.productId, input.productId), ne(firmware.state, "withdrawn")));
  const released = found.filter((one) => one.firmware === "released");
  if (released.some(({ rollout }) => rollout !== null)) return "A rollout of a released firmware is a draft: start it.";
  if (released.length > 0) {
    return "Firmware is released, but no open rollout offers any: make a rollout of it and start that.";
  }
  return found.length > 0
    ? 'The product\'s firmware is a draft: release it, with "startRollout": true or a rollout of its own.'
    : "The product has no firmware: upload one, release it, and start a rollout of it.";
}

const ADVICE: Readonly<Record<Exclude<NoneReason, "NO_FIRMWARE">, string>> = {
  DEVICE_BLOCKED: "The device is blocked: blockedReason says why. Unblock it to have it served.",
  UP_TO_DATE: "Nothing: it runs what it would be offered. For anything else start a rollout of that firmware.",
  HARDWARE_MISMATCH:
    "Compare the device's hardwareRevision with the hardwareRevisions of the firmware and of its rollout. A device tells its own with its checks.",
  UNKNOWN_VERSION:
    "What the device says that it runs is no version of the product's scheme: see reportedVersion, and mend what the device sends.",
  DOWNGRADE_REFUSED:
    "The offered firmware is older than what the device runs: only a rollout with allowDowngrade offers it.",
  NOT_IN_ROLLOUT:
    "Each candidate's excludedBy says which of the rollout's terms leaves the device out: change the device or the rollout. Where it is the percentage, raise it above the candidate's inAbovePercentage, or put the device on the allow-list.",
  OUTRANKED:
    "A rollout that ranks higher would take the device back to what it runs: finish that one, or give the other one a higher priority.",
  ROLLOUT_PAUSED: "Resume the rollout; its pausedBy says whether a threshold has paused it.",
  WINDOW_CLOSED: "Wait until opensAt, or change the rollout's window.",
  CAP_REACHED: "The rollout's places are taken: wait until one is free, or raise maxConcurrent or maxTotal.",
  UPGRADE_CANCELLED: "An operator has cancelled the upgrade: reset it to have its firmware offered again.",
  ATTEMPTS_EXHAUSTED: "Look into the upgrade's history for what fails, mend it, and reset the upgrade.",
  BACKOFF: "Wait until opensAt, or reset the upgrade.",
};
