import { type SQL, sql } from "drizzle-orm";
import { deadlineOf } from "../attempts/deadline.ts";
import type { Database } from "../database.ts";
import type { Candidate } from "../decide/candidates.ts";
import { type FixedStatement, fixedStatement } from "../fixed-statement.ts";
import { newPublicId } from "../public-id.ts";
import type { LiveAttemptState } from "../vocabulary.ts";
import type { OfferedAttempt } from "./answer.ts";

/** A new attempt, and the record that it belongs to. */
export interface OpenedAttempt {
  readonly attempt: OfferedAttempt & { readonly state: LiveAttemptState };
  readonly upgradeId: string;
}

/** What the next attempt on a candidate's record is going to be. */
export interface NewAttempt {
  readonly state: LiveAttemptState;
  readonly number: number;
  /** Of the record, which may be new as well. */
  readonly publicId: string;
}

export function newAttempt(
  { record, rollout }: Candidate,
  { autoConfirms }: { /** Whether it consents to everything. */ readonly autoConfirms: boolean },
): NewAttempt {
  return {
    state: rollout.requiresConfirmation && !autoConfirms ? "awaiting_confirmation" : "offered",
    number: (record?.attempts.at(-1)?.n ?? 0) + 1,
    publicId: record?.publicId ?? newPublicId(),
  };
}

/**
 * Opens the next attempt on the candidate's record, and makes the record where there is none, as one statement.
 * `undefined` when somebody else inserted first, or has changed the rollout since it was decided on: the transaction must
 * then be rolled back, so that no record without an attempt stays behind.
 *
 * `on conflict do nothing` without a target covers all constraints at once: one record per (device, firmware), one number
 * per attempt, one open attempt per device.
 */
export async function openAttempt(
  tx: Database,
  input: {
    readonly deviceId: bigint;
    readonly candidate: Candidate;
    /** What the device runs, as far as it is known. */
    readonly fromVersion: string | null;
    /** Whether it consents to everything. */
    readonly autoConfirms: boolean;
  },
): Promise<OpenedAttempt | undefined> {
  const { deviceId, candidate, fromVersion, autoConfirms } = input;
  const { record, firmware, rollout } = candidate;
  const { state, number, publicId } = newAttempt(candidate, { autoConfirms });
  const [opened] = await (record === undefined ? openFirst : openNext)(tx, {
    ...{ deviceId, fromVersion, number, state, publicId },
    ...{ firmwareId: firmware.id, rolloutId: rollout.id, rolloutRevision: rollout.revision, upgradeId: record?.id },
  });
  return opened === undefined ? undefined : { attempt: { id: opened.id, number, state }, upgradeId: publicId };
}

const { placeholder } = sql;
const deviceId = sql`${placeholder("deviceId")}::bigint`;
const firmwareId = sql`${placeholder("firmwareId")}::bigint`;
const rolloutId = sql`${placeholder("rolloutId")}::bigint`;
const state = sql`${placeholder("state")}::text`;
/** The rollout as it was decided on. */
const decidedOn = sql`rollouts.id = ${rolloutId} and rollouts.revision = ${placeholder("rolloutRevision")}::bigint`;

const openFirst = openWith(sql`
  insert into upgrades (public_id, device_id, firmware_id, rollout_id, from_version)
  select ${placeholder("publicId")}::uuid, ${deviceId}, ${firmwareId}, id, ${placeholder("fromVersion")}::text
  from rollouts where ${decidedOn}
  on conflict do nothing
  returning id
`);

const openNext = openWith(sql`
  select id from upgrades
  where id = ${placeholder("upgradeId")}::bigint and exists (select from rollouts where ${decidedOn})
`);

/** Opens an attempt on the record that `upgrade` makes or finds. */
function openWith(upgrade: SQL): FixedStatement<{ readonly id: number }> {
  return fixedStatement(
    sql`
      with upgrade as (${upgrade}), attempt as (
        insert into upgrade_attempts
          (upgrade_id, device_id, firmware_id, rollout_id, n, state, opened_at, deadline_at, last_seq)
        select
          id, ${deviceId}, ${firmwareId}, ${rolloutId}, ${placeholder("number")}::integer, ${state}, clock_timestamp(),
          ${deadlineOf({ rolloutId, state })}, 1
        from upgrade
        on conflict do nothing
        returning id
      ), event as (
        insert into attempt_events (attempt_id, seq, to_state) select id, 1, ${state} from attempt
      )
      select id from attempt
    `,
    ([id]) => ({ id: Number(id) }),
  );
}
