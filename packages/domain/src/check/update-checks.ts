import type { LockFactory, Logger } from "@ota/lock-core";
import type { Database } from "../database.ts";
import { decideUpdate } from "../decide/decide-update.ts";
import { type DeviceCredentials, deviceTokenInvalid, registerByGateway } from "../devices/credentials.ts";
import { ServiceBusyError } from "../errors.ts";
import { type ReportInput, type ReportResult, recordReport } from "../reports/record-report.ts";
import { type CheckAnswer, noneAnswer, updateAnswer } from "./answer.ts";
import { CatalogCache } from "./catalog-cache.ts";
import { DeviceFirmwareLock, type DeviceFirmwareLockSettings } from "./device-firmware-lock.ts";
import { type DeviceState, loadDeviceState } from "./device-state.ts";
import { DeviceStates } from "./device-states.ts";
import type { CheckObserver } from "./events.ts";
import { LastSeen } from "./last-seen.ts";
import { type Decided, Openings } from "./open-at-once.ts";
import { applyReported, type ReportedFacts } from "./reported.ts";
import { liveAnswer, settleCheck } from "./settle.ts";

export interface UpdateChecksSettings extends DeviceFirmwareLockSettings {
  /** How long a device's last-seen time may stay in memory only. @default 10_000 */
  readonly lastSeenFlushMs?: number;
}

export interface UpdateChecksOptions {
  readonly db: Database;
  /** Where the locks come from. To go without locks, give a factory on a store that grants everything. */
  readonly locks: LockFactory;
  readonly logger: Logger;
  readonly settings?: UpdateChecksSettings;
  /** @default nobody looks on */
  readonly observer?: CheckObserver | undefined;
}

/** What a device can do: ask, and report. One per process; any number of processes may work on one database. */
export interface UpdateChecks {
  /**
   * Answers a device's question, and finds or creates the one upgrade record of the device and the firmware.
   *
   * A serial that is unknown to the gateway's product is registered by it.
   *
   * @throws OtaError `DEVICE_TOKEN_INVALID`, `GATEWAY_TOKEN_INVALID`, `GATEWAY_TOKEN_REFUSED`; `INVALID_FIELD` on a
   * serial that no device can have.
   * @throws ServiceBusyError when too many ask for the same at once; nothing was lost, ask again.
   */
  checkForUpdate(input: CheckInput): Promise<CheckAnswer>;
  /**
   * Takes in what a device says about one of its attempts; see {@link recordReport}. It needs no lock but the rows'.
   */
  recordReport(input: ReportInput): Promise<ReportResult>;
  /** Whether the lock store answers, by the last that is known. */
  lockHealth(): "up" | "degraded";
  /**
   * Writes what is still in memory only, and waits for locks that are being released. Checks and reports may go on; what
   * they leave is written by the next flush.
   */
  close(): Promise<void>;
}

export interface CheckInput extends DeviceCredentials {
  readonly reported?: ReportedFacts;
}

/** A check reads again when its attempt was changed while it wrote; a device does not report faster than that. */
const MAX_READS = 3;

/** What a check may write under the lock. */
interface Settling {
  readonly firmwareId: bigint;
  /** Answers with the attempt that it opens; `undefined`: the decision does not hold any more. */
  readonly openAtOnce?: (() => Promise<CheckAnswer | undefined>) | undefined;
}

/** Makes the checks of one process. */
export function createUpdateChecks(options: UpdateChecksOptions): UpdateChecks {
  const { db, locks, logger, settings = {}, observer: observe = () => {} } = options;
  const { lastSeenFlushMs = 10_000, ...lockSettings } = settings;
  const catalogs = new CatalogCache(db);
  const lock = new DeviceFirmwareLock<CheckAnswer>({ locks, logger, observe, settings: lockSettings });
  const lastSeen = new LastSeen({ db, logger, flushMs: lastSeenFlushMs });
  const states = new DeviceStates(db);
  const openings = new Openings({ db, observe });

  return { checkForUpdate, recordReport: report, lockHealth: () => lock.health(), close };

  async function close(): Promise<void> {
    await Promise.all([lock.released(), lastSeen.flush()]);
  }

  async function checkForUpdate(input: CheckInput): Promise<CheckAnswer> {
    const answer = await answerFor(input);
    const { decision } = answer;
    observe(
      decision === "update"
        ? { kind: "decided", decision, how: answer.how }
        : { kind: "decided", decision, reason: answer.reason },
    );
    return answer;
  }

  async function answerFor({ reported = {}, ...credentials }: CheckInput): Promise<CheckAnswer> {
    for (let read = 0; read < MAX_READS; read += 1) {
      const loaded = await loadDevice(credentials);
      const { product } = loaded;
      const catalog = await catalogs.get({ productId: product.id, revision: product.catalogRevision });
      const state = await applyReported(db, { state: loaded, reported, catalog, observe });
      if (state === undefined) continue;

      const decision = decideUpdate({ ...state, catalog });
      if (decision.outcome === "continue") return liveAnswer(state, { live: decision.live, catalog, how: "found" });
      if (decision.outcome === "offer") {
        const [candidate] = decision.candidates;
        // Where the device has told news, its row is no longer the one that was read.
        const mayHold = decision.ends === undefined && state === loaded;
        const openAtOnce = mayHold ? () => opened({ state, candidate }) : undefined;
        return settledOrFound(state, { firmwareId: candidate.firmware.id, openAtOnce });
      }
      if (decision.ends !== undefined)
        return settledOrFound(state, { firmwareId: decision.ends.live.record.firmwareId });
      return noneAnswer(state, decision);
    }
    throw new ServiceBusyError("This device's upgrade is being changed by others. Ask again.", {
      retryAfterSeconds: 1,
    });
  }

  /** Whoever held the lock all the time has most likely made what this check asks for: then that is the answer. */
  async function settledOrFound({ device }: DeviceState, work: Settling): Promise<CheckAnswer> {
    try {
      return await settled(device.id, work);
    } catch (error) {
      if (!(error instanceof ServiceBusyError)) throw error;
      const state = await loadDeviceState(db, device.id);
      if (state === undefined) throw error;
      const { product } = state;
      const catalog = await catalogs.get({ productId: product.id, revision: product.catalogRevision });
      const decision = decideUpdate({ ...state, catalog });
      if (decision.outcome !== "continue") throw error;
      return liveAnswer(state, { live: decision.live, catalog, how: "joined" });
    }
  }

  async function settled(deviceId: bigint, { firmwareId, openAtOnce }: Settling): Promise<CheckAnswer> {
    let own = false;
    const answer = await lock.withDeviceFirmwareLock(deviceId, firmwareId, async () => {
      own = true;
      return (await openAtOnce?.()) ?? settleCheck({ db, catalogs, observe }, deviceId);
    });
    if (answer.decision === "none" || answer.how !== "created") return answer;
    if (!own) return { ...answer, how: "joined" };
    observe({ kind: "created" });
    return answer;
  }

  async function opened({ state, candidate }: Decided): Promise<CheckAnswer | undefined> {
    const attempt = await openings.open({ state, candidate });
    if (attempt === undefined) return undefined;
    lastSeen.written(state.device.id);
    return updateAnswer(state, { how: "created", ...attempt, firmware: candidate.firmware });
  }

  async function loadDevice(credentials: DeviceCredentials): Promise<DeviceState> {
    const state = (await states.of(credentials)) ?? (await newDevice(credentials));
    lastSeen.touch(state.device.id, state.now);
    return state;
  }

  async function newDevice({ tokenHash, serial }: DeviceCredentials): Promise<DeviceState> {
    if (serial === undefined) throw deviceTokenInvalid();
    await registerByGateway(db, { tokenHash, serial });
    const state = await states.of({ tokenHash, serial });
    if (state !== undefined) return state;
    // It was there, and was deleted or given a token in between.
    throw new ServiceBusyError("This device is being changed by an operator. Ask again.", { retryAfterSeconds: 1 });
  }

  async function report(input: ReportInput): Promise<ReportResult> {
    const { deviceId, now, ...result } = await recordReport(db, input);
    lastSeen.touch(deviceId, now);
    if (result.effect === "moved") observe({ kind: "moved", to: result.attempt.state });
    return result;
  }
}
