import type { CatalogFirmware } from "../decide/catalog.ts";
import type { AttemptRecord, DeviceHistory, LiveAttempt } from "../decide/facts.ts";
import type { Opening } from "../decide/window.ts";
import type { LiveAttemptState, NoneReason } from "../vocabulary.ts";
import type { DeviceState } from "./device-state.ts";
import type { HowAnswered } from "./events.ts";
import { secondsToOpening, secondsToSlot } from "./poll-slot.ts";

/** The answer to "is there firmware for me?". Ids are public ones; an attempt's is a positive int32. */
export type CheckAnswer = UpdateAnswer | NoneAnswer;

export interface UpdateAnswer extends AnswerToAny {
  readonly decision: "update";
  readonly how: HowAnswered;
  readonly attempt: OfferedAttempt & { readonly state: LiveAttemptState };
  readonly upgradeId: string;
  readonly firmware: OfferedFirmware;
}

export interface NoneAnswer extends AnswerToAny {
  readonly decision: "none";
  readonly reason: NoneReason;
  /** The device is to stop this attempt and to say so by the report `cancelled`, or `cancel_rejected` if it cannot. */
  readonly stopping: OfferedAttempt | undefined;
}

interface AnswerToAny {
  readonly device: { readonly id: string; readonly serial: string; readonly product: string };
  /** When to ask again, in whole seconds: 30 to 86 399. */
  readonly pollAfterSeconds: number;
  /** The attempt that the device succeeded with last. */
  readonly installedAttemptId: number | undefined;
  /** Whether it never told its attributes, or not since its last success: they may be others now. */
  readonly attributesWanted: boolean;
}

export interface OfferedAttempt {
  readonly id: number;
  /** 1, 2, 3, … within the upgrade. */
  readonly number: number;
}

export interface OfferedFirmware {
  readonly id: string;
  readonly version: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly sha1: string | null;
  readonly md5: string | null;
  /** The Ed25519 signature over its manifest, as base64; `null`: it is not signed. */
  readonly signature: string | null;
  readonly fileName: string;
  readonly contentType: string;
}

/** The answer that offers an open attempt. */
export function updateAnswer(
  state: DeviceState,
  offer: {
    readonly how: HowAnswered;
    readonly attempt: OfferedAttempt & { readonly state: LiveAttemptState };
    readonly upgradeId: string;
    readonly firmware: CatalogFirmware;
  },
): UpdateAnswer {
  const { publicId: id, version, sizeBytes, sha256, sha1, md5, fileName, contentType } = offer.firmware;
  const signature = offer.firmware.signature === null ? null : Buffer.from(offer.firmware.signature).toString("base64");
  return {
    decision: "update",
    how: offer.how,
    ...answerToAny(state),
    attempt: offer.attempt,
    upgradeId: offer.upgradeId,
    firmware: { id, version, sizeBytes, sha256, sha1, md5, signature, fileName, contentType },
  };
}

/** The answer without an update. */
export function noneAnswer(
  state: DeviceState,
  decision: {
    readonly reason: NoneReason;
    readonly stopping: LiveAttempt | undefined;
    readonly opening: Opening | undefined;
  },
): NoneAnswer {
  const { reason, stopping, opening } = decision;
  const stopped = stopping === undefined ? undefined : { id: stopping.id, number: stopping.n };
  return { decision: "none", reason, stopping: stopped, ...answerToAny(state, opening) };
}

function answerToAny({ device, product, history, now }: DeviceState, opening?: Opening): AnswerToAny {
  const slot = { deviceId: device.publicId, intervalSeconds: product.pollIntervalSeconds, now };
  return {
    device: { id: device.publicId, serial: device.serial, product: product.name },
    pollAfterSeconds: opening === undefined ? secondsToSlot(slot) : secondsToOpening(slot, opening),
    ...lastSuccess(device, history),
  };
}

function lastSuccess(
  { attributesToldAt: toldAt }: DeviceState["device"],
  { records }: DeviceHistory,
): Pick<AnswerToAny, "installedAttemptId" | "attributesWanted"> {
  let last: AttemptRecord | undefined;
  for (const { attempts } of records) {
    const attempt = attempts.at(-1);
    if (attempt?.state === "succeeded" && (last === undefined || attempt.id > last.id)) last = attempt;
  }
  const isOutdated = toldAt === null || (last?.closedAt != null && last.closedAt > toldAt);
  return { installedAttemptId: last?.id, attributesWanted: isOutdated };
}
