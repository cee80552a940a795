import { OtaError } from "./errors.ts";
import { requireInteger } from "./fields.ts";

/** Which part of a list is wanted. */
export interface PageRequest {
  /** How many items at most, 1 to 200. @default 50 */
  readonly limit?: number | undefined;
  /** The `nextCursor` of the page before. @default the start of the list */
  readonly cursor?: string | undefined;
}

/** One part of a list, newest first: what is added meanwhile never moves or repeats what comes after the cursor. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Leads to the next part; `undefined` at the end of the list. */
  readonly nextCursor: string | undefined;
}

/** The largest `limit` of a page. */
export const MAX_PAGE_LIMIT = 200;
/** How many items a page has where nothing is said. */
export const DEFAULT_PAGE_LIMIT = 50;

/** The greatest identity: a list without a cursor starts below it. */
const BEFORE_THE_FIRST = 2n ** 63n - 1n;

/** A page's request, checked: `limit + 1` rows with `id < beforeId` are to be read in descending order of id. */
export interface PageWindow {
  readonly list: string;
  readonly limit: number;
  readonly beforeId: bigint;
}

/**
 * Checks a page's request. Throws INVALID_FIELD on a bad limit and INVALID_CURSOR on a cursor that is damaged or belongs
 * to another list.
 */
export function pageWindow(list: string, request: PageRequest): PageWindow {
  const limit = pageLimit(request);
  const beforeId = request.cursor === undefined ? BEFORE_THE_FIRST : decodeCursor(list, request.cursor);
  return { list, limit, beforeId };
}

/** How many items are wanted. Throws INVALID_FIELD. */
export function pageLimit({ limit = DEFAULT_PAGE_LIMIT }: PageRequest): number {
  requireInteger("limit", limit, { least: 1, most: MAX_PAGE_LIMIT });
  return limit;
}

/** Makes the page of the rows that a window's query has found: up to `limit + 1`, the last one only tells of more. */
export function pageOf<Row, Item>(
  window: PageWindow,
  options: {
    readonly rows: readonly Row[];
    readonly idOf: (row: Row) => bigint;
    readonly toItem: (row: Row) => Item;
  },
): Page<Item> {
  const rows = options.rows.slice(0, window.limit);
  const last = options.rows.length > window.limit ? rows.at(-1) : undefined;
  return {
    items: rows.map(options.toItem),
    nextCursor: last === undefined ? undefined : encodeCursor(window.list, options.idOf(last)),
  };
}

function decodeCursor(list: string, cursor: string): bigint {
  const value = BigInt(cursorKey(cursor, { list, pattern: /^[1-9][0-9]{0,18}$/ }));
  return value < BEFORE_THE_FIRST ? value : BEFORE_THE_FIRST;
}

/** A cursor that leads to what comes after the key in the list's order. */
export function encodeCursor(list: string, key: bigint | string): string {
  return Buffer.from(`${list}:${key}`, "utf8").toString("base64url");
}

/** The key in a cursor that this list has given out. Throws INVALID_CURSOR on any other. */
export function cursorKey(cursor: string, options: { readonly list: string; readonly pattern: RegExp }): string {
  const { list, pattern } = options;
  const text = Buffer.from(cursor, "base64url").toString("utf8");
  const key = text.slice(list.length + 1);
  // Only the very text that was given out: base64url would also be read with dirt around it.
  if (!pattern.test(key) || encodeCursor(list, key) !== cursor) {
    throw new OtaError("INVALID_CURSOR", "The cursor does not belong to this list. Start again without a cursor.");
  }
  return key;
}
