import { eq } from "drizzle-orm";
import { loadCatalog } from "./check/catalog-cache.ts";
import { loadDeviceState } from "./check/device-state.ts";
import type { Database } from "./database.ts";
import { bucketOf } from "./decide/bucket.ts";
import { evaluateCandidates, exclusionOf, runningVersion } from "./decide/candidates.ts";
import { decideUpdate } from "./decide/decide-update.ts";
import { liveAttemptOf } from "./decide/live-attempt.ts";
import { OtaError } from "./errors.ts";
import { adviceOn } from "./explain-advice.ts";
import { isPublicId } from "./public-id.ts";
import type { DeviceAttributes } from "./schema/devices.ts";
import { devices } from "./schema/index.ts";
import type { Exclusion, LiveAttemptState, NoneReason, RolloutState } from "./vocabulary.ts";

/** What a check by this device would come to now, and why. */
export interface Explanation {
  readonly device: {
    readonly id: string;
    readonly serial: string;
    readonly product: string;
    readonly channel: string;
    readonly hardwareRevision: string | null;
    readonly groups: readonly string[];
    readonly attributes: DeviceAttributes;
    /** By whose clock its windows open: its own, or the product's. */
    readonly timeZone: string;
    readonly blocked: boolean;
    readonly reportedVersion: string | null;
    readonly confirmedVersion: string | null;
    /** What it is taken to run: `unknown` when nothing was ever reported, `invalid` when it is no version. */
    readonly runs: { readonly version: string } | "unknown" | "invalid";
  };
  readonly decision:
    | { readonly decision: "update"; readonly firmwareId: string; readonly version: string }
    | { readonly decision: "none"; readonly reason: NoneReason };
  /** What an operator can do about a decision of none, in a sentence; `undefined` with an update. */
  readonly advice: string | undefined;
  /** The open attempt. */
  readonly live:
    | {
        readonly attemptId: number;
        /** The public id of the upgrade that it belongs to. */
        readonly upgradeId: string;
        readonly state: LiveAttemptState;
        readonly version: string;
      }
    | undefined;
  /** Every rollout that is no draft, best first. */
  readonly candidates: readonly ExplainedCandidate[];
}

export interface ExplainedCandidate {
  readonly rolloutId: string;
  readonly rolloutState: RolloutState;
  readonly channel: string;
  readonly priority: number;
  /** The firmware that the rollout is for. */
  readonly target: { readonly firmwareId: string; readonly version: string };
  /** What the device would get: the target, or a step on the way to it. */
  readonly offers: { readonly firmwareId: string; readonly version: string };
  /** The upgrade of the device and that firmware, which can be cancelled and reset; `undefined`: it was never offered. */
  readonly upgradeId: string | undefined;
  /** Attempts on the record of the device and that firmware so far. */
  readonly attempts: number;
  /** Why it is not offered; `undefined`: it could be. */
  readonly reason: NoneReason | undefined;
  /** With `NOT_IN_ROLLOUT`: the first of the rollout's terms that leaves the device out. */
  readonly excludedBy: Exclusion | undefined;
  /** The bucket of the device in this rollout, 0 to 9999: it is in from the next hundredth of a percent on. */
  readonly bucket: number;
  /** When a closed window opens, or the pause between attempts ends; `undefined`: that is not the reason. */
  readonly opensAt: Date | undefined;
}

/**
 * Explains what one device gets and why, by the same queries and the same function as its check. Nothing is changed.
 *
 * @throws OtaError `NOT_FOUND`.
 */
export async function explainDevice(
  db: Database,
  input: {
    /** The device's public id. */
    readonly deviceId: string;
    /** @default the database's time */
    readonly now?: Date;
  },
): Promise<Explanation> {
  const state = await loadByPublicId(db, input.deviceId);
  const { device, product, history, places } = state;
  const now = input.now ?? state.now;
  const catalog = await loadCatalog(db, product.id);
  const running = runningVersion(device, catalog);
  const live = liveAttemptOf(history);
  const liveFirmwareId = live?.record.firmwareId;
  const facts = { device, running, history, catalog, places, now, liveFirmwareId };
  const candidates = evaluateCandidates(catalog.offers, facts);
  const decision = decideUpdate({ device, history, catalog, places, now });
  const { channel, hardwareRevision, blocked, reportedVersion, confirmedVersion } = device;
  const lacksStep = candidates.some(
    ({ rollout, refusal }) =>
      catalog.openOffers.some((offer) => offer.rollout.id === rollout.id) && refusal === "NO_FIRMWARE",
  );
  const outranked = candidates.some(({ refusal }) => refusal === "OUTRANKED");
  const exclusions = new Map(catalog.offers.map((offer) => [offer.rollout.id, exclusionOf(offer, device)]));
  // A candidate has none where its refusal has nothing to do with attempts; an operator wants to see it all the same.
  const recordOf = ({ id }: { readonly id: bigint }) => history.records.find(({ firmwareId }) => firmwareId === id);
  const nameOf = (id: bigint) => ({
    firmwareId: catalog.firmwareById.get(id)?.publicId ?? "",
    version: catalog.firmwareById.get(id)?.version ?? "",
  });

  return {
    device: {
      ...{ id: device.publicId, serial: device.serial, product: product.name, channel, hardwareRevision, blocked },
      ...{ groups: device.groups, attributes: device.attributes, timeZone: device.timeZone ?? catalog.timeZone },
      ...{ reportedVersion, confirmedVersion },
      runs: typeof running === "string" ? running : { version: reportedVersion ?? confirmedVersion ?? "" },
    },
    decision:
      decision.outcome === "none"
        ? { decision: "none", reason: decision.reason }
        : {
            decision: "update",
            ...nameOf(
              decision.outcome === "offer" ? decision.candidates[0].firmware.id : decision.live.record.firmwareId,
            ),
          },
    advice:
      decision.outcome === "none"
        ? await adviceOn(db, decision.reason, {
            productId: product.id,
            lacksStep,
            outranked,
            stopping: live?.state === "cancelling",
          })
        : undefined,
    live:
      live === undefined
        ? undefined
        : {
            ...{ attemptId: live.id, upgradeId: live.record.publicId, state: live.state },
            version: nameOf(live.record.firmwareId).version,
          },
    candidates: candidates.map(({ rollout, target, firmware, refusal, opening }) => ({
      rolloutId: rollout.publicId,
      rolloutState: rollout.state,
      channel: rollout.channel,
      priority: rollout.priority,
      target: nameOf(target.id),
      offers: nameOf(firmware.id),
      upgradeId: recordOf(firmware)?.publicId,
      attempts: recordOf(firmware)?.attempts.length ?? 0,
      reason: refusal,
      excludedBy: refusal === "NOT_IN_ROLLOUT" ? exclusions.get(rollout.id) : undefined,
      bucket: bucketOf(rollout.id, device.id),
      opensAt: opening?.opensAt,
    })),
  };
}

async function loadByPublicId(db: Database, publicId: string) {
  const [row] = isPublicId(publicId)
    ? await db.select({ id: devices.id }).from(devices).where(eq(devices.publicId, publicId))
    : [];
  const state = row === undefined ? undefined : await loadDeviceState(db, row.id);
  if (state === undefined) throw new OtaError("NOT_FOUND", "There is no such device.");
  return state;
}
