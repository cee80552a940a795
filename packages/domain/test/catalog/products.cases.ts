import { expect, it } from "vitest";
import { createProduct, getProduct, listAudit, listProducts } from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { SYSTEM, uniqueName } from "../support/records.ts";

export const productCases = casesOn("products", (database) => {
  it("a product is read back as it was made, with the defaults of the native API", async () => {
    const name = uniqueName("product");
    const made = await createProduct(database().db, { actor: SYSTEM, name });
    expect(made).toEqual({
      ...{ name, versionScheme: "semver", confirmBy: "version", pollIntervalSeconds: 300, catalogRevision: 0n },
      ...{
        timeZone: "UTC",
        maxAttempts: 3,
        backoffSeconds: 600,
        timeoutsSeconds: {},
        hardwareAttribute: null,
        versionAttribute: null,
        signingPublicKey: null,
      },
      createdAt: expect.any(Date),
    });
    expect(Math.abs(made.createdAt.getTime() - Date.now())).toBeLessThan(60_000);
    expect(await getProduct(database().db, { product: name })).toEqual(made);
  });

  it("a product is made with all of its settings, which the audit log shows", async () => {
    const { db } = database();
    const name = uniqueName("product");
    const settings = {
      ...{ pollIntervalSeconds: 60, timeZone: "Europe/Berlin", maxAttempts: 5, backoffSeconds: 0 },
      ...{ timeoutsSeconds: { offered: null }, hardwareAttribute: "board", versionAttribute: null },
    };
    expect(await createProduct(db, { actor: SYSTEM, name, ...settings })).toMatchObject(settings);
    const { items } = await listAudit(db, { subjectId: name });
    expect(items).toMatchObject([{ after: { name, versionScheme: "semver", confirmBy: "version", ...settings } }]);
  });

  it("of 50 parallel calls with one name exactly one succeeds and 49 get ALREADY_EXISTS", async () => {
    const name = uniqueName("product");
    const calls = inParallel(50, () => createProduct(database().db, { actor: SYSTEM, name }));
    expect(await tally(calls)).toEqual({ "no error": 1, ALREADY_EXISTS: 49 });
  });

  it.each(["", "-a", "A", "ä", "a b", "a\0", "a\n", "a/b", "a".repeat(64)])("the name %j is refused", async (name) => {
    expect(await codeOf(createProduct(database().db, { actor: SYSTEM, name }))).toBe("INVALID_FIELD");
    expect(await codeOf(getProduct(database().db, { product: name }))).toBe("NOT_FOUND");
  });

  it.each([
    { timeZone: "Mars/Base" },
    { maxAttempts: 0 },
    { timeoutsSeconds: { offered: 0 } },
    { hardwareAttribute: "a=b" },
    { pollIntervalSeconds: 29 },
    { pollIntervalSeconds: 86_400 },
    { pollIntervalSeconds: 60.5 },
    { pollIntervalSeconds: Number.NaN },
    { versionScheme: "calver" as "semver" },
    { confirmBy: "luck" as "report" },
  ])("a product with %j is refused", async (field) => {
    const name = uniqueName("product");
    expect(await codeOf(createProduct(database().db, { actor: SYSTEM, name, ...field }))).toBe("INVALID_FIELD");
    expect(await codeOf(getProduct(database().db, { product: name }))).toBe("NOT_FOUND");
  });

  it("products are listed newest first", async () => {
    const names = [uniqueName("product"), uniqueName("product")];
    for (const name of names) await createProduct(database().db, { actor: SYSTEM, name });
    const page = await listProducts(database().db, { limit: 2 });
    expect(page.items.map(({ name }) => name)).toEqual(names.toReversed());
  });
});
