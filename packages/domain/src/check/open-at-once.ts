import { sql } from "drizzle-orm";
import { deadlineOf } from "../attempts/deadline.ts";
import type { Database } from "../database.ts";
import { type Candidate, isNewcomer } from "../decide/candidates.ts";
import { errorCodes } from "../errors.ts";
import { fixedStatement } from "../fixed-statement.ts";
import { givenList, type ListedValue, textList } from "../id-list.ts";
import { attemptsText, type DeviceState } from "./device-state.ts";
import type { CheckObserver } from "./events.ts";
import { Gathering } from "./gathering.ts";
import { type NewAttempt, newAttempt, type OpenedAttempt } from "./open-attempt.ts";

/** What was decided, and on what. */
export interface Decided {
  readonly state: DeviceState;
  readonly candidate: Candidate;
}

/**
 * Opens attempts on decisions that still hold, those of the devices that ask together by one statement and without a
 * transaction around it. It compares what the decision was made on, under the lock of the device's row and without waiting
 * for it.
 */
export class Openings {
  readonly #gathering: Gathering<Opening, OpenedAttempt | undefined>;

  constructor(context: OpeningContext) {
    this.#gathering = new Gathering((given) => openTogether(context, given), { apart: countingRollout });
  }

  /**
   * `undefined`: no attempt was opened, since something has changed, somebody else works on the device, or the rollout has
   * not places enough for all who ask together. Then it has to be decided again, under the row's lock.
   */
  open({ state, candidate }: Decided): Promise<OpenedAttempt | undefined> {
    const attempt = newAttempt(candidate, state.device);
    return this.#gathering.get(`${state.device.id} ${candidate.firmware.id}`, { state, candidate, attempt });
  }
}

interface OpeningContext {
  readonly db: Database;
  readonly observe: CheckObserver;
}

type Opening = Decided & { readonly attempt: NewAttempt };

/** What its statement may have to wait for, so that nobody waits for the places of another rollout. */
function countingRollout({ candidate: { rollout } }: Opening): bigint | undefined {
  return rollout.counted ? rollout.id : undefined;
}

async function openTogether(
  { db, observe }: OpeningContext,
  given: readonly Opening[],
): Promise<readonly (OpenedAttempt | undefined)[]> {
  const list = (of: (opening: Opening) => ListedValue) => textList(given.map((opening) => of(opening)));
  try {
    const opened = await openUnchanged(db, {
      deviceIds: list(({ state }) => state.device.id),
      rowWriters: list(({ state }) => state.seen.rowWriter),
      histories: list(({ state }) => state.seen.attempts),
      revisions: list(({ state }) => state.product.catalogRevision),
      fromVersions: list(({ state: { device } }) => device.reportedVersion ?? device.confirmedVersion),
      firmwareIds: list(({ candidate }) => candidate.firmware.id),
      rolloutIds: list(({ candidate }) => candidate.rollout.id),
      rolloutRevisions: list(({ candidate }) => candidate.rollout.revision),
      counted: list(({ candidate }) => candidate.rollout.counted),
      newcomers: list(({ state, candidate }) => isNewcomer(candidate.rollout, state.history)),
      upgradeIds: list(({ candidate }) => candidate.record?.id ?? null),
      publicIds: list(({ attempt }) => attempt.publicId),
      numbers: list(({ attempt }) => attempt.number),
      states: list(({ attempt }) => attempt.state),
    });
    const ids = new Map(opened.map(({ publicId, id }) => [publicId, id]));
    return given.map(({ attempt: { publicId, number, state } }) => {
      const id = ids.get(publicId);
      return id === undefined ? undefined : { attempt: { id, number, state }, upgradeId: publicId };
    });
  } catch (error) {
    // Somebody who holds no lock was faster with one of them, and nothing was written for any.
    if (!violatesConstraint(error)) throw error;
    observe({ kind: "conflict_lost" });
    return given.map(() => undefined);
  }
}

/**
 * - `locked`: whose row and catalog are those that were decided on. Rows that somebody else has locked are left out; what
 *   was written to a row since this statement began shows in its writer, which is compared again once it is locked.
 * - `unchanged`: and whose history is, as this statement sees it. What was opened since it began does not show in it: that
 *   is up to the constraints. What takes from a device writes its row; see `rewriteDevices`.
 * - `device`: writes the row, so that the next one to come sees another writer.
 * - `place`: of the rollout, where it counts them, for all of the batch or for none of it. Its counter is the last lock, and
 *   the only one of its kind: see `countingRollout`. It is written before the attempts, whose times tell who had a place when.
 * - `event`: where somebody without the row's lock has opened an attempt, it is the event of no attempt, which the table
 *   refuses, and all of this with it: so no record stays behind without an attempt, and no place is taken for none.
 */
const openUnchanged = fixedStatement(
  sql`
    with given as (
      select * from unnest(
        ${givenList("deviceIds", "bigint")}, ${givenList("rowWriters", "text")}, ${givenList("histories", "text")},
        ${givenList("revisions", "bigint")}, ${givenList("fromVersions", "text")}, ${givenList("firmwareIds", "bigint")},
        ${givenList("rolloutIds", "bigint")}, ${givenList("upgradeIds", "bigint")}, ${givenList("publicIds", "uuid")},
        ${givenList("numbers", "integer")}, ${givenList("states", "text")},
        ${givenList("rolloutRevisions", "bigint")}, ${givenList("counted", "boolean")}, ${givenList("newcomers", "boolean")}
      ) as given(
        device_id, row_writer, history, revision, from_version, firmware_id, rollout_id, upgrade_id, public_id, n, state,
        rollout_revision, counted, newcomer
      )
    ), locked as (
      select devices.id, given.* from given
      join devices on devices.id = given.device_id
      join products on products.id = devices.product_id and products.catalog_revision = given.revision
      where devices.xmin::text = given.row_writer
      order by devices.id
      for update of devices skip locked
    ), unchanged as (
      select * from locked as devices where ${attemptsText} is not distinct from history
    ), device as (
      update devices set last_seen_at = greatest(devices.last_seen_at, now()) from unchanged
      where devices.id = unchanged.id
      returning unchanged.*
    ), wanted as (
      select rollout_id, rollout_revision, count(*)::integer as places,
        (count(*) filter (where newcomer))::integer as newcomers
      from device where counted group by rollout_id, rollout_revision
    ), place as (
      update rollout_counters set live = live + wanted.places, granted = granted + wanted.newcomers
      from wanted join rollouts on rollouts.id = wanted.rollout_id
      where rollout_counters.rollout_id = wanted.rollout_id and rollout_counters.revision = wanted.rollout_revision
        and reached is null
        and (max_concurrent is null or live + wanted.places <= max_concurrent)
        and (max_total is null or wanted.newcomers = 0 or granted + wanted.newcomers <= max_total)
      returning wanted.rollout_id, wanted.rollout_revision
    ), placed as (
      select * from device
      where not counted or (rollout_id, rollout_revision) in (select rollout_id, rollout_revision from place)
    ), upgrade as (
      insert into upgrades (public_id, device_id, firmware_id, rollout_id, from_version)
      select public_id, device_id, firmware_id, rollout_id, from_version from placed where upgrade_id is null
      on conflict do nothing
      returning id, device_id
    ), record as (
      select id, device_id from upgrade
      union all
      select upgrade_id, device_id from placed where upgrade_id is not null
    ), deadline as materialized (
      select rollout_id, state, ${deadlineOf({ rolloutId: sql`each.rollout_id`, state: sql`each.state` })} as at
      from (select distinct rollout_id, state from given) each
    ), attempt as (
      insert into upgrade_attempts
        (upgrade_id, device_id, firmware_id, rollout_id, n, state, opened_at, deadline_at, last_seq)
      select record.id, device_id, firmware_id, rollout_id, n, state, clock_timestamp(), deadline.at, 1
      from record join placed using (device_id) join deadline using (rollout_id, state)
      on conflict do nothing
      returning id, device_id
    ), event as (
      insert into attempt_events (attempt_id, seq, to_state)
      select attempt.id, 1, state from placed left join attempt using (device_id)
    )
    select placed.public_id, attempt.id from attempt join placed using (device_id)
  `,
  ([publicId, id]) => ({ publicId: String(publicId), id: Number(id) }),
);

/** SQLSTATE class 23. */
function violatesConstraint(error: unknown): boolean {
  return [...errorCodes(error)].some((code) => /^23[0-9A-Z]{3}$/.test(code));
}
