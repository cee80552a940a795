import { expect, it } from "vitest";
import { listAudit, listDevices, listProducts, type Page, type PageRequest } from "../src/index.ts";
import { casesOn } from "./support/databases.ts";
import { codeOf } from "./support/errors.ts";
import { aDevice, aProduct } from "./support/records.ts";

export const pageCases = casesOn("pages", (database) => {
  it("walking a list gives every item once, also while others are added", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const made: string[] = [];
    for (let index = 0; index < 7; index += 1) made.push((await aDevice(db, product)).device.id);
    const seen = await walk((page) => listDevices(db, { product, ...page }), {
      limit: 2,
      between: () => aDevice(db, product),
    });
    expect(seen.map(({ id }) => id)).toEqual(made.toReversed());
  });

  it("a page that holds the last item is the last page", async () => {
    const { db } = database();
    const product = await aProduct(db);
    for (let index = 0; index < 4; index += 1) await aDevice(db, product);
    const first = await listDevices(db, { product, limit: 2 });
    expect(first.nextCursor).toEqual(expect.any(String));
    expect(await listDevices(db, { product, limit: 2, cursor: first.nextCursor })).toMatchObject({
      items: [{}, {}],
      nextCursor: undefined,
    });
    expect(await listDevices(db, { product, limit: 4 })).toMatchObject({ nextCursor: undefined });
  });

  it("a list of nothing is one empty page", async () => {
    const { db } = database();
    expect(await listDevices(db, { product: await aProduct(db) })).toEqual({ items: [], nextCursor: undefined });
  });

  it("without a limit a page holds 50", async () => {
    const { db } = database();
    const product = await aProduct(db);
    for (let index = 0; index < 51; index += 1) await aDevice(db, product);
    const page = await listDevices(db, { product });
    expect(page.items).toHaveLength(50);
    expect((await listDevices(db, { product, cursor: page.nextCursor })).items).toHaveLength(1);
  });

  it.each([0, 201, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("the limit %d is refused", async (limit) => {
    expect(await codeOf(listProducts(database().db, { limit }))).toBe("INVALID_FIELD");
  });

  const cursors = {
    empty: "",
    "no base64": "!!!",
    "of nothing": encode("hello"),
    "of another list": encode("products:5"),
    "of a negative id": encode("devices:-5"),
    "of a padded id": encode("devices:05"),
    "with more behind it": `${encode("devices:5")}AA`,
    "of too great an id": encode("devices:99999999999999999999"),
    "with SQL in it": encode("devices:5 or 1=1"),
    "with a NUL": encode("devices:5\0"),
    "very long": "A".repeat(100_000),
  };
  it.each(Object.entries(cursors))("a cursor that is %s is refused", async (_, cursor) => {
    expect(await codeOf(listDevices(database().db, { cursor }))).toBe("INVALID_CURSOR");
  });

  it("a cursor of one list is refused by another", async () => {
    const { db } = database();
    await aDevice(db, await aProduct(db));
    await aDevice(db, await aProduct(db));
    const { nextCursor } = await listAudit(db, { limit: 1 });
    expect(await codeOf(listAudit(db, { cursor: nextCursor }))).toBe("no error");
    expect(await codeOf(listProducts(db, { cursor: nextCursor }))).toBe("INVALID_CURSOR");
  });

  it("the greatest id that a cursor can carry is no error", async () => {
    expect(await codeOf(listDevices(database().db, { cursor: encode("devices:9999999999999999999") }))).toBe(
      "no error",
    );
  });
});

function encode(text: string): string {
  return Buffer.from(text, "utf8").toString("base64url");
}

async function walk<Item>(
  list: (page: PageRequest) => Promise<Page<Item>>,
  options: { limit: number; between: () => Promise<unknown> },
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await list({ limit: options.limit, cursor });
    items.push(...page.items);
    cursor = page.nextCursor;
    await options.between();
  } while (cursor !== undefined);
  return items;
}
