import { expect, it } from "vitest";
import { getProduct, listAudit, type ProductChanges, updateProduct } from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel } from "../support/errors.ts";
import { aProduct, SYSTEM } from "../support/records.ts";

const actor = SYSTEM;

export const updateProductCases = casesOn("a product's settings", (database) => {
  it("change as given, what is left out stays, and checks of any process get to know", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const before = await getProduct(db, { product });
    expect(before).toMatchObject({ timeZone: "UTC", maxAttempts: 3, backoffSeconds: 600, timeoutsSeconds: {} });
    const changes = { maxAttempts: 5, timeZone: "Europe/Berlin", timeoutsSeconds: { offered: null, downloading: 60 } };
    const changed = await updateProduct(db, { actor, product, ...changes });
    expect(changed).toEqual({ ...before, ...changes, catalogRevision: before.catalogRevision + 1n });
    expect(await getProduct(db, { product })).toEqual(changed);
  });

  it("that are so already change nothing, also of many at once", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const { catalogRevision } = await getProduct(db, { product });
    const change = () =>
      updateProduct(db, { actor, product, backoffSeconds: 0, timeoutsSeconds: { installed: 60, downloaded: 5 } });
    await Promise.all(inParallel(5, change));
    await updateProduct(db, { actor, product });
    expect((await getProduct(db, { product })).catalogRevision).toBe(catalogRevision + 1n);
    expect((await listAudit(db, { subjectId: product })).items).toMatchObject([
      {
        action: "product.update",
        before: { backoffSeconds: 600, timeoutsSeconds: {} },
        after: { backoffSeconds: 0, timeoutsSeconds: { downloaded: 5, installed: 60 } },
      },
      { action: "product.create" },
    ]);
  });

  it.each<ProductChanges>([
    { pollIntervalSeconds: 29 },
    { timeZone: "Mars/Olympus" },
    { maxAttempts: 0 },
    { maxAttempts: 101 },
    { backoffSeconds: -1 },
    { timeoutsSeconds: { offered: 0 } },
    { timeoutsSeconds: { offered: 1.5 } },
    { timeoutsSeconds: { succeeded: 60 } as ProductChanges["timeoutsSeconds"] },
  ])("%j is refused", async (changes) => {
    const { db } = database();
    const product = await aProduct(db);
    expect(await codeOf(updateProduct(db, { actor, product, ...changes }))).toBe("INVALID_FIELD");
  });

  it("of no product are NOT_FOUND", async () => {
    expect(await codeOf(updateProduct(database().db, { actor, product: "none-such", maxAttempts: 1 }))).toBe(
      "NOT_FOUND",
    );
  });
});
