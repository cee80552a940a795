import { and, eq, gt, sql } from "drizzle-orm";
import { extendDeadline } from "../attempts/deadline.ts";
import { type DeviceUpdate, recordDevice, recordTransition } from "../attempts/record-transition.ts";
import { storableWord } from "../attempts/report-text.ts";
import { nextState } from "../attempts/transitions.ts";
import type { Database } from "../database.ts";
import { type DeviceCredentials, holdsCredentials, refusalOf } from "../devices/credentials.ts";
import { OtaError } from "../errors.ts";
import { devices, firmware, products, upgradeAttempts, upgrades } from "../schema/index.ts";
import { canonicalVersion } from "../versions/version.ts";
import { type AttemptState, type CancelOutcome, TERMINAL_ATTEMPT_STATES, type VersionScheme } from "../vocabulary.ts";
import type { Report } from "./report.ts";
import { storableReport } from "./storable-report.ts";

export interface ReportInput extends DeviceCredentials {
  readonly attemptId: number;
  readonly report: Report;
  /**
   * Whether it is kept only where it moves the attempt: for what a device has not said, but done, and perhaps again.
   * @default false
   */
  readonly movesOnly?: boolean;
}

export interface ReportResult {
  readonly attempt: { readonly id: number; readonly state: AttemptState };
  /**
   * `moved`: the attempt is in another state now; `history`: the report was noted, nothing else; `repeated`: it had been
   * reported before, and nothing was written.
   */
  readonly effect: "moved" | "history" | "repeated";
  /** What of the report was not kept, by the names of its fields, 20 at most; absent: nothing. */
  readonly ignored?: readonly string[];
}

/**
 * More reports than this without any effect are not kept: a device in a loop must not fill the database. Reports that
 * move the attempt always are.
 */
const MAX_EVENTS_PER_ATTEMPT = 1_000;

/**
 * Records a device's report in one transaction, under the locks of the device's and the attempt's row: reports are
 * ordered by our receipt, whatever the device's clock says. When this returns, the report is committed.
 *
 * Any word of an open attempt begins its deadline anew. A report of an end is kept also where the attempt is over: it
 * revises a timeout if it is a success, and is history else.
 *
 * @throws OtaError `DEVICE_TOKEN_INVALID`, `GATEWAY_TOKEN_INVALID`, `GATEWAY_TOKEN_REFUSED`; `NOT_FOUND` for an attempt
 * that is not the device's; `ATTEMPT_CLOSED` with `details.state` for progress on one that is over.
 */
export async function recordReport(
  db: Database,
  { attemptId, report, movesOnly = false, ...credentials }: ReportInput,
): Promise<ReportResult & { readonly deviceId: bigint; readonly now: Date }> {
  return db.transaction(async (tx) => {
    const found = await lockAttempt(tx, { credentials, attemptId });
    const outcome = outcomeOf(report, found);
    const { state: from } = found.attempt;
    if (outcome.effect === "closed") {
      throw new OtaError("ATTEMPT_CLOSED", `The attempt is over: it is ${from}. Ask for updates again.`, {
        details: { state: from },
      });
    }

    const { effect, to, cancelOutcome } = outcome;
    const { record, ignored } = storableReport(report);
    const device = deviceUpdate(found, { report, succeeded: await confirms(tx, { outcome, report, found }) });
    const kept = effect === "history" && !movesOnly && found.attempt.lastSeq < MAX_EVENTS_PER_ATTEMPT;
    if (effect === "moved" || kept) {
      await recordTransition(tx, { attemptId, from, to, cancelOutcome, report: record, device });
    } else {
      if (device !== undefined) await recordDevice(tx, device);
      if (!isOver(to)) await extendDeadline(tx, { attemptId, state: to });
    }
    return {
      ...{ attempt: { id: attemptId, state: to }, effect, ...(ignored.length === 0 ? {} : { ignored }) },
      ...{ deviceId: found.device.id, now: found.now },
    };
  });
}

interface FoundAttempt {
  readonly attempt: {
    readonly id: number;
    readonly state: AttemptState;
    readonly cancelOutcome: CancelOutcome | null;
    readonly lastSeq: number;
  };
  readonly device: { readonly id: bigint; readonly reportedVersion: string | null };
  readonly target: { readonly version: string; readonly canonicalVersion: string };
  readonly product: { readonly versionScheme: VersionScheme; readonly confirmBy: "report" | "version" };
  readonly now: Date;
}

/** Ids are positive int32; any other number is nobody's, and PostgreSQL would refuse it. */
const MAX_ATTEMPT_ID = 2 ** 31 - 1;

async function lockAttempt(
  tx: Database,
  { credentials, attemptId }: { readonly credentials: DeviceCredentials; readonly attemptId: number },
): Promise<FoundAttempt> {
  const shown = holdsCredentials(credentials);
  const possible = Number.isInteger(attemptId) && attemptId > 0 && attemptId <= MAX_ATTEMPT_ID;
  const [found] = await tx
    .select({
      attempt: {
        id: upgradeAttempts.id,
        state: upgradeAttempts.state,
        cancelOutcome: upgradeAttempts.cancelOutcome,
        lastSeq: upgradeAttempts.lastSeq,
      },
      device: { id: devices.id, reportedVersion: devices.reportedVersion },
      target: { version: firmware.version, canonicalVersion: firmware.canonicalVersion },
      product: { versionScheme: products.versionScheme, confirmBy: products.confirmBy },
      now: sql`now()`.mapWith(devices.createdAt),
    })
    .from(devices)
    .innerJoin(upgradeAttempts, eq(upgradeAttempts.deviceId, devices.id))
    .innerJoin(firmware, eq(firmware.id, upgradeAttempts.firmwareId))
    .innerJoin(products, eq(products.id, devices.productId))
    .where(and(shown, eq(upgradeAttempts.id, possible ? attemptId : 0)))
    // The device's row first, as everywhere.
    .for("update", { of: [devices, upgradeAttempts] });
  if (found !== undefined) return found;
  const [device] = await tx.select({ id: devices.id }).from(devices).where(shown);
  if (device === undefined) throw await refusalOf(tx, credentials);
  throw new OtaError("NOT_FOUND", "This device has no such attempt.");
}

type ReportOutcome =
  | {
      readonly effect: "moved" | "history" | "repeated";
      readonly to: AttemptState;
      readonly cancelOutcome: CancelOutcome | null;
    }
  | { readonly effect: "closed" };

/** First what the report says, then what the version in it shows, since that is the truth. */
function outcomeOf(report: Report, { attempt, target, product }: FoundAttempt): ReportOutcome {
  const { confirmBy, versionScheme } = product;
  const said = nextState({ ...attempt, confirmBy }, report.state);
  const then = said.effect === "moved" ? said : attempt;
  const runsTarget =
    report.version !== undefined && canonicalVersion(versionScheme, report.version) === target.canonicalVersion;
  const shown = runsTarget ? nextState({ ...then, confirmBy }, "target_version") : said;
  if (shown.effect === "moved") return { effect: "moved", to: shown.state, cancelOutcome: shown.cancelOutcome };
  if (said.effect === "closed") return { effect: "closed" };
  return { effect: said.effect, to: then.state, cancelOutcome: then.cancelOutcome };
}

/**
 * Whether the device runs the attempt's firmware by now. Where its word is success it is believed on an attempt that is
 * over too, whoever has ended that, unless it has succeeded with something else since: then the word is an old one.
 */
async function confirms(
  tx: Database,
  context: {
    readonly outcome: { readonly effect: "moved" | "history" | "repeated"; readonly to: AttemptState };
    readonly report: Report;
    readonly found: FoundAttempt;
  },
): Promise<boolean> {
  const { outcome, report, found } = context;
  const { effect, to } = outcome;
  const { id, state: from } = found.attempt;
  const lateWord = effect === "history" && isOver(from) && report.state === "succeeded";
  if (effect === "moved" ? to !== "succeeded" : !lateWord || found.product.confirmBy !== "report") return false;
  if (!isOver(from)) return true;
  const [newer] = await tx
    .select({ id: upgradeAttempts.id })
    .from(upgrades)
    .innerJoin(upgradeAttempts, eq(upgradeAttempts.upgradeId, upgrades.id))
    .where(
      and(eq(upgrades.deviceId, found.device.id), gt(upgradeAttempts.id, id), eq(upgradeAttempts.state, "succeeded")),
    )
    .limit(1);
  return newer === undefined;
}

function isOver(state: AttemptState): boolean {
  return TERMINAL_ATTEMPT_STATES.some((over) => over === state);
}

/** What the device's row learns from the report, or `undefined` where it is no news. */
function deviceUpdate(
  { device, target, product }: FoundAttempt,
  { report, succeeded }: { readonly report: Report; readonly succeeded: boolean },
): DeviceUpdate | undefined {
  const { id, reportedVersion: before } = device;
  const confirmedVersion = succeeded ? target.version : undefined;
  if (report.version !== undefined) {
    const reportedVersion = storableWord(report.version);
    const news = reportedVersion !== before || confirmedVersion !== undefined;
    return news ? { id, reportedVersion, confirmedVersion } : undefined;
  }
  if (confirmedVersion === undefined) return undefined;
  // What it reported before the install is no longer true: its word is the newest that is known.
  const stale =
    before !== null && canonicalVersion(product.versionScheme, before) !== target.canonicalVersion ? null : undefined;
  return { id, reportedVersion: stale, confirmedVersion };
}
