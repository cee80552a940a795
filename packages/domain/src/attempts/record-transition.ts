import { type SQL, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import type { AttributeChanges } from "../devices/device-fields.ts";
import { countTransitions } from "../rollouts/count-transitions.ts";
import { attemptEvents, devices, upgradeAttempts } from "../schema/index.ts";
import { type AttemptState, type CancelOutcome, type ReportedState, TERMINAL_ATTEMPT_STATES } from "../vocabulary.ts";
import { deadlineOf } from "./deadline.ts";

/** A change of an attempt, or a report that changes nothing, together with what the device's row learns from it. */
export interface TransitionRecord {
  readonly attemptId: number;
  /** The state that was decided on: in any other the attempt stays as it is. */
  readonly from: AttemptState;
  /** Equal to `from` for a report that is history only. */
  readonly to: AttemptState;
  readonly cancelOutcome: CancelOutcome | null;
  /** What the device said; none: the service itself moves the attempt. */
  readonly report?: ReportRecord | undefined;
  readonly device?: DeviceUpdate | undefined;
}

/** A report in its storable form. */
export interface ReportRecord {
  /** `null`: it only told its version. */
  readonly state: ReportedState | null;
  readonly version: string | null;
  readonly progressPercent: number | null;
  readonly message: string | null;
  readonly details: readonly string[];
  readonly code: number | null;
  readonly deviceTime: Date | null;
}

/** What a device's row learns. What is `undefined` stays as it is in the row, whoever has written it meanwhile. */
export interface DeviceUpdate {
  readonly id: bigint;
  readonly hardwareRevision?: string | undefined;
  /** `null`: what it reported before is no longer true. */
  readonly reportedVersion?: string | null | undefined;
  readonly confirmedVersion?: string | undefined;
  /** Changes: `null` removes the attribute. */
  readonly attributes?: AttributeChanges | undefined;
}

/**
 * Writes a transition and its event as one statement: the device's row first, then the attempt's with its new deadline,
 * then the event with the next sequence number, taken under the row's lock, and the counters of its rollout. False when
 * the attempt was not in `from` any more: then nothing is written but the device's row.
 */
export async function recordTransition(db: Database, record: TransitionRecord): Promise<boolean> {
  const { attemptId, from, to, cancelOutcome, report } = record;
  const closed = TERMINAL_ATTEMPT_STATES.some((state) => state === to);
  const moves = from !== to;
  const device = record.device === undefined ? undefined : updatedDevice(db, record.device);
  const deadline = deadlineOf({ rolloutId: sql`upgrade_attempts.rollout_id`, state: sql`${to}::text` });
  const moved = db.$with("moved", { id: upgradeAttempts.id }).as(sql`
    update upgrade_attempts set
      state = ${to}::text,
      cancel_outcome = ${cancelOutcome}::text,
      deadline_at = ${closed ? sql`null` : deadline},
      closed_at = case when not ${closed}::boolean then null when state = ${to}::text then closed_at else now() end,
      ${moves ? reasonOf(record) : sql``}
      last_seq = last_seq + 1,
      updated_at = now()
    ${device === undefined ? sql`` : sql`from device`}
    where upgrade_attempts.id = ${attemptId}::integer and upgrade_attempts.state = ${from}::text
    ${device === undefined ? sql`` : sql`and upgrade_attempts.device_id = device.id`}
    returning upgrade_attempts.id, upgrade_attempts.rollout_id, ${from}::text as from_state, state as to_state, last_seq
  `);
  const noted = db.$with("noted", {}).as(sql`
    insert into attempt_events
      (attempt_id, seq, reported_state, from_state, to_state, reported_version, progress_percent, message, details, code,
       device_time)
    select
      id, last_seq, ${report?.state ?? null}::text, ${from}::text, ${to}::text, ${report?.version ?? null}::text,
      ${report?.progressPercent ?? null}::smallint, ${report?.message ?? null}::text,
      ${sql.param([...(report?.details ?? [])], attemptEvents.details)}::text[], ${report?.code ?? null}::integer,
      ${report?.deviceTime?.toISOString() ?? null}::timestamptz
    from moved
  `);
  const counted = db.$with("counted", {}).as(countTransitions(sql`moved`));
  const steps = [...(device === undefined ? [] : [device]), moved, noted, ...(moves ? [counted] : [])] as const;
  const rows = await db
    .with(...steps)
    .select({ id: moved.id })
    .from(moved);
  return rows.length > 0;
}

/** Why it failed, as the device puts it; in any other state an attempt has no reason. */
function reasonOf({ to, report }: TransitionRecord): SQL {
  const { code = null, message = null } = to === "failed" ? (report ?? {}) : {};
  return sql`failure_code = ${code}::integer, failure_message = ${message}::text,`;
}

/** Writes what a device has told about itself, where no attempt is concerned. */
export async function recordDevice(db: Database, update: DeviceUpdate): Promise<void> {
  const device = updatedDevice(db, update);
  await db.with(device).select({ id: device.id }).from(device);
}

function updatedDevice(db: Database, update: DeviceUpdate) {
  const { id, hardwareRevision, reportedVersion, confirmedVersion, attributes } = update;
  const reported = reportedVersion !== undefined;
  return db.$with("device", { id: devices.id }).as(sql`
    update devices set
      hardware_revision = coalesce(${hardwareRevision ?? null}::text, hardware_revision),
      reported_version = case when ${reported}::boolean then ${reportedVersion ?? null}::text else reported_version end,
      ${attributes === undefined ? sql`` : sql`attributes = jsonb_strip_nulls(attributes || ${JSON.stringify(attributes)}::jsonb),`}
      confirmed_version = coalesce(${confirmedVersion ?? null}::text, confirmed_version)
    where id = ${id}::bigint
    returning id
  `);
}
