import { and, desc, lt, type SQL, sql } from "drizzle-orm";
import type { AnyPgColumn } from "drizzle-orm/pg-core";
import { storableTime } from "../attempts/report-text.ts";
import type { Database } from "../database.ts";
import { invalidField } from "../fields.ts";
import { isAnyOf } from "../id-list.ts";
import { encodeCursor, type Page, type PageRequest, pageWindow } from "../pages.ts";
import { devices } from "../schema/index.ts";
import { type Device, selectDevices, toDevice } from "./device.ts";

/** When devices were seen last, by the service's clock, as it has been written so far. */
export interface LastSeenFilter {
  /** Then or later. */
  readonly seenSince?: Date | undefined;
  /** Before that, or never. */
  readonly notSeenSince?: Date | undefined;
}

/**
 * How many devices one page looks at. There is no index of the time, since each check would have to write it; so a search
 * among a million devices is 200 pages of some milliseconds, and none that takes seconds.
 */
const EXAMINED = 5_000;

const LIST = "devices-by-last-seen";

/**
 * Looks through devices in their order for those that were seen last at some time. A page ends when it is full or when it
 * has looked at 5 000 of them: it may hold few, or none, and lead on all the same.
 */
export async function listByLastSeen(
  db: Database,
  input: PageRequest &
    LastSeenFilter & {
      /** What else the devices have to be: what {@link EXAMINED} counts. */
      readonly condition: SQL | undefined;
      /** Columns in which all of these are equal, which say what index has them together. */
      readonly order: readonly (SQL | AnyPgColumn)[];
    },
): Promise<Page<Device>> {
  const { condition, order } = input;
  const window = pageWindow(LIST, input);
  const examined = db
    .select({ id: devices.id, matches: matching(input).as("matches") })
    .from(devices)
    .where(and(lt(devices.id, window.beforeId), condition))
    .orderBy(...order.map((column) => desc(column)), desc(devices.id))
    // No parameter: a plan for any number would take it for a tenth of the table, and read that whole.
    .limit(sql.raw(String(EXAMINED)) as unknown as number)
    .as("examined");
  const found = sql`array_agg(${examined.id} order by ${examined.id} desc) filter (where ${examined.matches})`;
  const [looked] = await db
    .select({
      ids: sql<readonly string[] | null>`(${found})[1:${window.limit + 1}::integer]::text[]`,
      last: sql<string | null>`min(${examined.id})::text`,
      count: sql<number>`count(*)::integer`,
    })
    .from(examined);
  const ids = (looked?.ids ?? []).map(BigInt);
  const shown = ids.slice(0, window.limit);
  const rows = await selectDevices(db).where(isAnyOf(devices.id, shown)).orderBy(desc(devices.id));
  const more = looked?.count === EXAMINED ? looked.last : undefined;
  const last = ids.length > window.limit ? shown.at(-1) : more;
  return { items: rows.map(toDevice), nextCursor: last == null ? undefined : encodeCursor(LIST, last) };
}

function matching({ seenSince, notSeenSince }: LastSeenFilter): SQL<boolean> {
  const since = timeOf("seenSince", seenSince);
  const before = timeOf("notSeenSince", notSeenSince);
  return sql<boolean>`(
    (${since}::timestamptz is null or ${devices.lastSeenAt} >= ${since}::timestamptz)
    and (${before}::timestamptz is null or ${devices.lastSeenAt} is null or ${devices.lastSeenAt} < ${before}::timestamptz)
  )`;
}

function timeOf(field: string, time: Date | undefined): string | null {
  if (time === undefined) return null;
  return storableTime(time)?.toISOString() ?? invalidField(field, "a time in the years 1 to 9999");
}
