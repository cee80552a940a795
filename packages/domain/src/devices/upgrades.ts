import { and, asc, desc, eq, gt, lt, notExists } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { invalidField, requireOneOf } from "../fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId } from "../public-id.ts";
import { findRollout } from "../rollouts/rollouts.ts";
import { devices, firmware, products, rollouts, upgradeAttempts, upgrades } from "../schema/index.ts";
import { ATTEMPT_STATES, type AttemptState } from "../vocabulary.ts";
import { type NewestEvents, newestEvents } from "./attempt-events.ts";

/** One try on an upgrade. */
export interface Attempt {
  /** A positive int32. */
  readonly id: number;
  /** 1, 2, 3, … within the upgrade. */
  readonly number: number;
  readonly state: AttemptState;
  /** The public id of the rollout under whose offer it was opened. */
  readonly rolloutId: string;
  /** What the device gave as the reason of a failure. */
  readonly failureCode: number | null;
  readonly failureMessage: string | null;
  readonly openedAt: Date;
  readonly updatedAt: Date;
  readonly closedAt: Date | null;
  /** When it is ended if the device stays silent. */
  readonly deadlineAt: Date | null;
}

/** The one record of a device's move to a firmware. */
export interface Upgrade {
  /** Its public id. */
  readonly id: string;
  readonly device: { readonly id: string; readonly serial: string; readonly product: string };
  readonly firmware: { readonly id: string; readonly version: string };
  /** What the device ran when the record was made. */
  readonly fromVersion: string | null;
  /** Attempts numbered above this count towards the cap: an operator's reset has forgiven the others. */
  readonly attemptsForgiven: number;
  /** Whether an operator has cancelled it: its firmware is not offered to the device until a reset. */
  readonly cancelled: boolean;
  /** The newest attempt: its state is the upgrade's. */
  readonly attempt: Attempt;
  readonly createdAt: Date;
}

/** An upgrade with its attempts, and the end of what happened to each. */
export interface UpgradeHistory extends Upgrade {
  /** Oldest first. */
  readonly attempts: readonly (Attempt & NewestEvents)[];
}

/**
 * Lists upgrades, newest first: all, or those of a device, a firmware or a state of their newest attempt, or whose newest
 * attempt is in that state under a rollout. Throws NOT_FOUND on what there is not, or INVALID_FIELD on a rollout without a
 * state.
 */
export async function listUpgrades(
  db: Database,
  input: PageRequest & {
    readonly deviceId?: string | undefined;
    readonly firmwareId?: string | undefined;
    /** Only with `state`. */
    readonly rolloutId?: string | undefined;
    readonly state?: AttemptState | undefined;
  },
): Promise<Page<Upgrade>> {
  const window = pageWindow("upgrades", input);
  const { deviceId, firmwareId, rolloutId, state } = input;
  // The index that leads to a rollout's attempts has them in the list's order within a state.
  if (rolloutId !== undefined && state === undefined) invalidField("state", "given, with rolloutId");
  if (state !== undefined) requireOneOf("state", state, ATTEMPT_STATES);
  const device = deviceId === undefined ? undefined : await rowIdOf(db, devices, deviceId);
  const target = firmwareId === undefined ? undefined : await rowIdOf(db, firmware, firmwareId);
  const rollout = rolloutId === undefined ? undefined : (await findRollout(db, rolloutId)).rollout.id;
  const wanted = { beforeUpgradeId: window.beforeId, firmwareId: target, rolloutId: rollout, state };
  const attempt = newestAttempts(db, wanted);
  const rows = await selectUpgrades(db, attempt)
    .where(
      and(
        lt(upgrades.id, window.beforeId),
        device === undefined ? undefined : eq(upgrades.deviceId, device),
        // Those of a state are of that firmware already: saying it twice, the planner takes for two things that seldom meet.
        target === undefined || state !== undefined ? undefined : eq(upgrades.firmwareId, target),
      ),
    )
    .orderBy(desc(upgrades.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: (row) => row.upgrade.id, toItem: toUpgrade });
}

/** Reads an upgrade with its attempts and their newest events. Throws NOT_FOUND. */
export async function getUpgrade(db: Database, input: { readonly upgradeId: string }): Promise<UpgradeHistory> {
  const attempt = allAttempts(db);
  const rows = isPublicId(input.upgradeId)
    ? await selectUpgrades(db, attempt).where(eq(upgrades.publicId, input.upgradeId)).orderBy(asc(attempt.n))
    : [];
  const newest = rows.at(-1);
  if (newest === undefined) throw new OtaError("NOT_FOUND", "There is no such upgrade.");
  const eventsOf = await newestEvents(db, newest.upgrade.id);
  return {
    ...toUpgrade(newest),
    attempts: rows.map((row) => ({ ...toAttempt(row), ...(eventsOf.get(row.attempt.id) ?? NO_EVENTS) })),
  };
}

/** Those of an attempt whose history was deleted, being old. */
const NO_EVENTS: NewestEvents = { events: [], earlierEvents: undefined };

interface UpgradeRow {
  readonly upgrade: typeof upgrades.$inferSelect;
  readonly attempt: typeof upgradeAttempts.$inferSelect;
  readonly rolloutId: string;
  readonly device: Upgrade["device"];
  readonly firmware: Upgrade["firmware"];
}

/** One row for each attempt of the sub-select. */
function selectUpgrades(db: Database, attempt: AttemptSelect) {
  return db
    .select({
      upgrade: upgrades,
      attempt: attempt._.selectedFields,
      rolloutId: rollouts.publicId,
      device: { id: devices.publicId, serial: devices.serial, product: products.name },
      firmware: { id: firmware.publicId, version: firmware.version },
    })
    .from(upgrades)
    .innerJoinLateral(attempt, eq(attempt.upgradeId, upgrades.id))
    .innerJoin(devices, eq(devices.id, upgrades.deviceId))
    .innerJoin(products, eq(products.id, devices.productId))
    .innerJoin(firmware, eq(firmware.id, upgrades.firmwareId))
    .innerJoin(rollouts, eq(rollouts.id, attempt.rolloutId))
    .$dynamic();
}

type AttemptSelect = ReturnType<typeof allAttempts>;

function allAttempts(db: Database) {
  return db.select().from(upgradeAttempts).as("attempt");
}

/**
 * The newest attempt of each upgrade, in two forms, so that a page costs the same at any size. Without a state the list
 * is walked by upgrade, and each one's newest attempt looked up. With a state it is walked by the attempts in that state,
 * which have an index in the list's order, and those with a later attempt are left out.
 */
function newestAttempts(
  db: Database,
  wanted: {
    readonly beforeUpgradeId: bigint;
    readonly firmwareId: bigint | undefined;
    readonly rolloutId: bigint | undefined;
    readonly state: AttemptState | undefined;
  },
): AttemptSelect {
  const { beforeUpgradeId, firmwareId, rolloutId, state } = wanted;
  const select = db.select().from(upgradeAttempts);
  if (state === undefined) {
    return select
      .where(eq(upgradeAttempts.upgradeId, upgrades.id))
      .orderBy(desc(upgradeAttempts.n))
      .limit(1)
      .as("attempt");
  }
  const later = alias(upgradeAttempts, "later");
  const laterAttempt = db
    .select({ n: later.n })
    .from(later)
    .where(and(eq(later.upgradeId, upgradeAttempts.upgradeId), gt(later.n, upgradeAttempts.n)));
  return select
    .where(
      and(
        eq(upgradeAttempts.state, state),
        lt(upgradeAttempts.upgradeId, beforeUpgradeId),
        firmwareId === undefined ? undefined : eq(upgradeAttempts.firmwareId, firmwareId),
        rolloutId === undefined ? undefined : eq(upgradeAttempts.rolloutId, rolloutId),
        notExists(laterAttempt),
      ),
    )
    .as("attempt");
}

/** The internal id behind a public one. Throws NOT_FOUND: a filter that can match nothing is a mistake of the caller. */
async function rowIdOf(db: Database, table: typeof devices | typeof firmware, publicId: string): Promise<bigint> {
  const rows = isPublicId(publicId)
    ? await db.select({ id: table.id }).from(table).where(eq(table.publicId, publicId))
    : [];
  if (rows[0] === undefined) {
    throw new OtaError("NOT_FOUND", `There is no such ${table === devices ? "device" : "firmware"}.`);
  }
  return rows[0].id;
}

function toUpgrade(row: UpgradeRow): Upgrade {
  const { upgrade, device, firmware } = row;
  const { publicId: id, fromVersion, attemptsForgiven, createdAt } = upgrade;
  const cancelled = isCancelled(row.attempt);
  return { id, device, firmware, fromVersion, attemptsForgiven, cancelled, attempt: toAttempt(row), createdAt };
}

/** Whether an operator has cancelled the upgrade whose newest attempt this is. */
export function isCancelled({ cancelOutcome }: Pick<typeof upgradeAttempts.$inferSelect, "cancelOutcome">): boolean {
  return cancelOutcome === "cancelled";
}

function toAttempt({ attempt, rolloutId }: UpgradeRow): Attempt {
  const { id, n: number, state, failureCode, failureMessage, openedAt, updatedAt, closedAt, deadlineAt } = attempt;
  return { id, number, state, rolloutId, failureCode, failureMessage, openedAt, updatedAt, closedAt, deadlineAt };
}
