import { sql } from "drizzle-orm";
import { deadlineOf } from "../attempts/deadline.ts";
import type { Database } from "../database.ts";
import type { Candidate } from "../decide/candidates.ts";
import { newPublicId } from "../public-id.ts";
import { upgradeAttempts, upgrades } from "../schema/index.ts";
import type { LiveAttemptState } from "../vocabulary.ts";
import type { OfferedAttempt } from "./answer.ts";

/** A new attempt, and the record that it belongs to. */
export interface OpenedAttempt {
  readonly attempt: OfferedAttempt & { readonly state: LiveAttemptState };
  readonly upgradeId: string;
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
  },
): Promise<OpenedAttempt | undefined> {
  const { deviceId, candidate, fromVersion } = input;
  const { record, firmware, rollout } = candidate;
  const state: LiveAttemptState = rollout.requiresConfirmation ? "awaiting_confirmation" : "offered";
  const number = (record?.attempts.at(-1)?.n ?? 0) + 1;
  const publicId = record?.publicId ?? newPublicId();
  const decidedOn = sql`rollouts.id = ${rollout.id}::bigint and rollouts.revision = ${rollout.revision}::bigint`;
  const upgrade = tx.$with("upgrade", { id: upgrades.id }).as(
    record === undefined
      ? sql`
          insert into upgrades (public_id, device_id, firmware_id, rollout_id, from_version)
          select ${publicId}::uuid, ${deviceId}::bigint, ${firmware.id}::bigint, id, ${fromVersion}::text
          from rollouts where ${decidedOn}
          on conflict do nothing
          returning id
        `
      : sql`
          select id from upgrades
          where id = ${record.id}::bigint and exists (select from rollouts where ${decidedOn})
        `,
  );
  const attempt = tx.$with("attempt", { id: upgradeAttempts.id }).as(sql`
    insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, deadline_at, last_seq)
    select
      id, ${deviceId}::bigint, ${firmware.id}::bigint, ${rollout.id}::bigint, ${number}::integer, ${state}::text,
      ${deadlineOf({ rolloutId: sql`${rollout.id}::bigint`, state: sql`${state}::text` })}, 1
    from upgrade
    on conflict do nothing
    returning id
  `);
  const event = tx.$with("event", {}).as(sql`
    insert into attempt_events (attempt_id, seq, to_state) select id, 1, ${state}::text from attempt
  `);
  const [opened] = await tx.with(upgrade, attempt, event).select({ id: attempt.id }).from(attempt);
  return opened === undefined ? undefined : { attempt: { id: opened.id, number, state }, upgradeId: publicId };
}
