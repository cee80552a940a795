import { and, arrayContains, asc, desc, eq, gt, gte, lt, or, type SQL, sql } from "drizzle-orm";
import type { AnyPgColumn } from "drizzle-orm/pg-core";
import { findProduct } from "../catalog/products.ts";
import type { Database } from "../database.ts";
import { invalidField, requireChannel, requireText } from "../fields.ts";
import { cursorKey, encodeCursor, type Page, type PageRequest, pageLimit, pageOf, pageWindow } from "../pages.ts";
import { devices } from "../schema/index.ts";
import { type Device, selectDevices, toDevice } from "./device.ts";
import { requireAttributeName, requireGroup, requireSerial, SERIAL } from "./device-fields.ts";
import { type LastSeenFilter, listByLastSeen } from "./list-by-last-seen.ts";

/** Which devices are wanted: those for which all of it is so. */
export interface DeviceFilter extends LastSeenFilter {
  readonly product?: string | undefined;
  /** Exactly this serial. */
  readonly serial?: string | undefined;
  /** How the serial begins, byte by byte. Needs the product; the list is then in the order of the serials. */
  readonly serialPrefix?: string | undefined;
  readonly group?: string | undefined;
  /** The attribute has this value: as a text, or as the number or truth value that is written so. */
  readonly attribute?: { readonly name: string; readonly value: string } | undefined;
  /** Needs the product. */
  readonly channel?: string | undefined;
  /** What the device runs as far as it is known, as it was reported. Needs the product. */
  readonly version?: string | undefined;
  readonly blocked?: boolean | undefined;
}

type Found = PageRequest & DeviceFilter & { readonly condition: SQL | undefined };

/**
 * Lists devices, newest first, or by a serial's beginning in the order of the serials. Each of the filters has an index but
 * that by the time when they were seen last: a page looks at 5 000 of the devices which all else is true of, and may hold
 * fewer than wanted, or none, and lead on. Throws NOT_FOUND on an unknown product, INVALID_FIELD or INVALID_CURSOR.
 */
export async function listDevices(db: Database, input: PageRequest & DeviceFilter): Promise<Page<Device>> {
  const condition = await conditionOf(db, input);
  const { serialPrefix, group, attribute } = input;
  const isBySeen = input.seenSince !== undefined || input.notSeenSince !== undefined;
  if (serialPrefix !== undefined) {
    if (isBySeen) invalidField("serialPrefix", "left out, with seenSince or notSeenSince");
    return listBySerial(db, { ...input, condition, serialPrefix });
  }
  const found = { ...input, condition };
  const list = (on: Database) =>
    isBySeen ? listByLastSeen(on, { ...found, order: orderOf(found) }) : listNewestFirst(on, found);
  return group === undefined && attribute === undefined ? list(db) : withOwnPlan(db, list);
}

/**
 * Has a statement planned for its very parameters. Whether devices of a group or with an attribute are looked up by it, or
 * met soon enough on the way from the newest one on, hangs on how many there are: a plan for any parameters takes two
 * seconds among a million for a group of fifty, one of its own a few milliseconds.
 */
function withOwnPlan<Result>(db: Database, list: (tx: Database) => Promise<Result>): Promise<Result> {
  return db.transaction(async (tx) => {
    const mode = sql`set_config('plan_cache_mode', 'force_custom_plan', true)`;
    await tx.select({ mode }).from(sql`(select) as nothing`);
    return list(tx);
  });
}

/** All that are found are equal in it: it only says which index has them together. */
function orderOf({ version, channel }: DeviceFilter): readonly (SQL | AnyPgColumn)[] {
  return version !== undefined ? [RUNS] : channel !== undefined ? [devices.channel] : [];
}

async function listNewestFirst(db: Database, input: Found): Promise<Page<Device>> {
  const window = pageWindow("devices", input);
  const rows = await selectDevices(db)
    .where(and(lt(devices.id, window.beforeId), input.condition))
    .orderBy(...orderOf(input).map((column) => desc(column)), desc(devices.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: (row) => row.device.id, toItem: toDevice });
}

const BY_SERIAL = { list: "devices-by-serial", pattern: SERIAL.pattern };

/** Byte by byte, as its index is, whatever the language of the database. */
const SERIAL_BYTES = sql`(${devices.serial} collate "C")`;

/** Above every character that a serial can have. A range, because a plan for any parameters makes none of a `like`. */
const AFTER_ALL = "\x7f";

async function listBySerial(
  db: Database,
  input: PageRequest & { readonly condition: SQL | undefined; readonly serialPrefix: string },
): Promise<Page<Device>> {
  const { condition, serialPrefix, cursor } = input;
  const limit = pageLimit(input);
  const after = cursor === undefined ? undefined : cursorKey(cursor, BY_SERIAL);
  const found = await selectDevices(db)
    .where(
      and(
        after === undefined || after < serialPrefix ? gte(SERIAL_BYTES, serialPrefix) : gt(SERIAL_BYTES, after),
        lt(SERIAL_BYTES, serialPrefix + AFTER_ALL),
        condition,
      ),
    )
    .orderBy(asc(SERIAL_BYTES))
    .limit(limit + 1);
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return {
    items: rows.map(toDevice),
    nextCursor: last === undefined ? undefined : encodeCursor(BY_SERIAL.list, last.device.serial),
  };
}

async function conditionOf(db: Database, filter: DeviceFilter): Promise<SQL | undefined> {
  const { serial, serialPrefix, group, attribute, channel, version, blocked } = filter;
  if (serial !== undefined) requireSerial("serial", serial);
  if (serialPrefix !== undefined) requireSerial("serialPrefix", serialPrefix);
  if (group !== undefined) requireGroup("group", group);
  if (channel !== undefined) requireChannel("channel", channel);
  if (version !== undefined) requireText("version", version, { maxLength: 256 });
  for (const [name, value] of Object.entries({ serialPrefix, channel, version })) {
    if (value !== undefined && filter.product === undefined) invalidField("product", `given, with ${name}`);
  }
  const product = filter.product === undefined ? undefined : await findProduct(db, filter.product);
  return and(
    product === undefined ? undefined : eq(devices.productId, product.id),
    serial === undefined ? undefined : eq(devices.serial, serial),
    group === undefined ? undefined : arrayContains(devices.groups, [group]),
    attribute === undefined ? undefined : hasAttribute(attribute),
    channel === undefined ? undefined : isEqualInOrder(devices.channel, channel),
    version === undefined ? undefined : isEqualInOrder(RUNS, version),
    // Without a parameter, which would hide from the plan that the index of the blocked ones fits.
    blocked === undefined ? undefined : blocked ? sql`${devices.blocked}` : sql`not ${devices.blocked}`,
  );
}

/** What a device runs as far as it is known: the same expression as in its index. */
const RUNS = sql`coalesce(${devices.reportedVersion}, ${devices.confirmedVersion})`;

/**
 * Equality by which the plan does not know that all rows are equal in the list's order. A plan for any parameters takes a
 * value to be as frequent as others, and would read the whole product from its newest device on for one that nobody has.
 */
function isEqualInOrder(column: SQL | AnyPgColumn, value: string): SQL {
  return sql`(${column} >= ${value} and ${column} <= ${value})`;
}

function hasAttribute({ name, value }: { readonly name: string; readonly value: string }): SQL | undefined {
  requireAttributeName("attribute", name);
  if (value !== "") requireText("attribute", value, { maxLength: 256 });
  const readings: (string | number | boolean)[] = [value];
  if (value === "true" || value === "false") readings.push(value === "true");
  if (/^-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,15})?$/.test(value)) readings.push(Number(value));
  return or(...readings.map((reading) => sql`${devices.attributes} @> ${JSON.stringify({ [name]: reading })}::jsonb`));
}
