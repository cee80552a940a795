import { and, asc, desc, eq, lt, notExists, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireOneOf } from "../fields.ts";
import { isAnyOf } from "../id-list.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId } from "../public-id.ts";
import { attemptEvents, devices, firmware, products, upgradeAttempts, upgrades } from "../schema/index.ts";
import { ATTEMPT_STATES, type AttemptState, type ReportedState } from "../vocabulary.ts";

/** One try on an upgrade. */
export interface Attempt {
  /** A positive int32. */
  readonly id: number;
  /** 1, 2, 3, … within the upgrade. */
  readonly number: number;
  readonly state: AttemptState;
  /** What the device gave as the reason of a failure. */
  readonly failureCode: number | null;
  readonly failureMessage: string | null;
  readonly openedAt: Date;
  readonly updatedAt: Date;
  readonly closedAt: Date | null;
  /** When it is ended if the device stays silent. */
  readonly deadlineAt: Date | null;
}

/** One entry of an attempt's history, in the order of receipt. */
export interface AttemptEvent {
  readonly seq: number;
  /** What the device said; `null`: the service itself moved the attempt. */
  readonly reportedState: ReportedState | null;
  /** `null` where the attempt was opened by it. */
  readonly fromState: AttemptState | null;
  /** Equal to `fromState` where the report was history only. */
  readonly toState: AttemptState;
  readonly reportedVersion: string | null;
  readonly progressPercent: number | null;
  readonly message: string | null;
  readonly details: readonly string[];
  readonly code: number | null;
  /** The device's own clock, which may be wrong. */
  readonly deviceTime: Date | null;
  readonly receivedAt: Date;
}

/** The one record of a device's move to a firmware. */
export interface Upgrade {
  /** Its public id. */
  readonly id: string;
  readonly device: { readonly id: string; readonly serial: string; readonly product: string };
  readonly firmware: { readonly id: string; readonly version: string };
  /** What the device ran when the record was made. */
  readonly fromVersion: string | null;
  /** The newest attempt: its state is the upgrade's. */
  readonly attempt: Attempt;
  readonly createdAt: Date;
}

/** An upgrade with all that happened to it. */
export interface UpgradeHistory extends Upgrade {
  /** Oldest first. */
  readonly attempts: readonly (Attempt & { readonly events: readonly AttemptEvent[] })[];
}

/** Lists upgrades, newest first: all, or those of a device, a firmware or a state of their newest attempt. */
export async function listUpgrades(
  db: Database,
  input: PageRequest & {
    readonly deviceId?: string | undefined;
    readonly firmwareId?: string | undefined;
    readonly state?: AttemptState | undefined;
  },
): Promise<Page<Upgrade>> {
  const window = pageWindow("upgrades", input);
  const { deviceId, firmwareId, state } = input;
  if (state !== undefined) requireOneOf("state", state, ATTEMPT_STATES);
  const device = deviceId === undefined ? undefined : await rowIdOf(db, devices, deviceId);
  const target = firmwareId === undefined ? undefined : await rowIdOf(db, firmware, firmwareId);
  const rows = await selectUpgrades(db)
    .where(
      and(
        lt(upgrades.id, window.beforeId),
        isNewestAttempt(db),
        device === undefined ? undefined : eq(upgrades.deviceId, device),
        target === undefined ? undefined : eq(upgrades.firmwareId, target),
        state === undefined ? undefined : eq(upgradeAttempts.state, state),
      ),
    )
    .orderBy(desc(upgrades.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: (row) => row.upgrade.id, toItem: toUpgrade });
}

/** Reads an upgrade with its attempts and their events. Throws NOT_FOUND. */
export async function getUpgrade(db: Database, input: { readonly upgradeId: string }): Promise<UpgradeHistory> {
  const rows = isPublicId(input.upgradeId)
    ? await selectUpgrades(db).where(eq(upgrades.publicId, input.upgradeId)).orderBy(asc(upgradeAttempts.n))
    : [];
  const newest = rows.at(-1);
  if (newest === undefined) throw new OtaError("NOT_FOUND", "There is no such upgrade.");
  const attemptIds = rows.map(({ attempt }) => attempt.id);
  const events = await db
    .select()
    .from(attemptEvents)
    .where(isAnyOf(attemptEvents.attemptId, attemptIds))
    .orderBy(asc(attemptEvents.attemptId), asc(attemptEvents.seq));
  const eventsOf = Map.groupBy(events, (event) => event.attemptId);
  return {
    ...toUpgrade(newest),
    attempts: rows.map(({ attempt }) => ({
      ...toAttempt(attempt),
      events: (eventsOf.get(attempt.id) ?? []).map(({ attemptId: _, ...event }) => event),
    })),
  };
}

interface UpgradeRow {
  readonly upgrade: typeof upgrades.$inferSelect;
  readonly attempt: typeof upgradeAttempts.$inferSelect;
  readonly device: Upgrade["device"];
  readonly firmware: Upgrade["firmware"];
}

/** One row for each attempt. */
function selectUpgrades(db: Database) {
  return db
    .select({
      upgrade: upgrades,
      attempt: upgradeAttempts,
      device: { id: devices.publicId, serial: devices.serial, product: products.name },
      firmware: { id: firmware.publicId, version: firmware.version },
    })
    .from(upgrades)
    .innerJoin(upgradeAttempts, eq(upgradeAttempts.upgradeId, upgrades.id))
    .innerJoin(devices, eq(devices.id, upgrades.deviceId))
    .innerJoin(products, eq(products.id, devices.productId))
    .innerJoin(firmware, eq(firmware.id, upgrades.firmwareId))
    .$dynamic();
}

/** An anti-join by the unique (upgrade_id, n): it costs one look-up for each row of the page. */
function isNewestAttempt(db: Database) {
  const later = alias(upgradeAttempts, "later");
  return notExists(
    db
      .select({ one: sql`1` })
      .from(later)
      .where(and(eq(later.upgradeId, upgradeAttempts.upgradeId), sql`${later.n} > ${upgradeAttempts.n}`)),
  );
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

function toUpgrade({ upgrade, attempt, device, firmware }: UpgradeRow): Upgrade {
  const { publicId: id, fromVersion, createdAt } = upgrade;
  return { id, device, firmware, fromVersion, attempt: toAttempt(attempt), createdAt };
}

function toAttempt(row: typeof upgradeAttempts.$inferSelect): Attempt {
  const { id, n: number, state, failureCode, failureMessage, openedAt, updatedAt, closedAt, deadlineAt } = row;
  return { id, number, state, failureCode, failureMessage, openedAt, updatedAt, closedAt, deadlineAt };
}
