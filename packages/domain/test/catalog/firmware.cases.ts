import { expect, it } from "vitest";
import {
  checkNewFirmware,
  createProduct,
  getFirmware,
  listFirmware,
  OtaError,
  registerFirmware,
} from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { aFirmware, aProduct, aReleasedFirmware, artifactFacts, SYSTEM, uniqueName } from "../support/records.ts";

export const firmwareCases = casesOn("firmware", (database) => {
  it("a firmware is registered as a draft and read back with all its facts", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const artifact = artifactFacts("abc");
    const made = await registerFirmware(db, {
      ...{ actor: SYSTEM, product, version: "1.2.0", artifact },
      ...{ hardwareRevisions: ["rev b", 'rev "c", {d}', "rev b"], requiresVersion: "1.0.0" },
    });
    expect(made).toMatchObject({ product, version: "1.2.0", state: "draft", artifact, requiresVersion: "1.0.0" });
    expect(made.hardwareRevisions).toEqual(["rev b", 'rev "c", {d}']);
    expect(made).toMatchObject({ rollouts: [], releasedAt: null, withdrawnAt: null });
    expect(await getFirmware(db, { firmwareId: made.id })).toEqual(made);
  });

  it("of 50 parallel calls with one version, spelled in two ways, exactly one succeeds", async () => {
    const { db } = database();
    const name = uniqueName("product");
    await createProduct(db, { actor: SYSTEM, name, versionScheme: "dotted" });
    const calls = inParallel(50, (index) =>
      aFirmware(db, { product: name, version: index % 2 === 0 ? "1.0" : "1.0.0" }),
    );
    expect(await tally(calls)).toEqual({ "no error": 1, ALREADY_EXISTS: 49 });
  });

  it("whoever registers a version again is told which firmware has it", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const { id } = await aFirmware(db, { product, version: "1.0.0+build.1" });
    const error = await aFirmware(db, { product, version: "1.0.0+build.2" }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(OtaError);
    expect(error).toMatchObject({ code: "ALREADY_EXISTS", details: { firmwareId: id } });
    expect(String(error)).toContain("1.0.0+build.1");
  });

  it("a firmware can be checked before it is registered, with the same refusals", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const check = (fields: object) => codeOf(checkNewFirmware(db, { product, version: "1.0.0", ...fields }));
    expect(await check({ hardwareRevisions: ["b"], requiresVersion: "0.9.0" })).toBe("no error");
    expect((await listFirmware(db, { product })).items).toEqual([]);
    expect(await check({ product: uniqueName("nothing") })).toBe("NOT_FOUND");
    expect(await check({ version: "1.0" })).toBe("INVALID_VERSION");
    expect(await check({ requiresVersion: "x" })).toBe("INVALID_VERSION");
    expect(await check({ hardwareRevisions: [""] })).toBe("INVALID_FIELD");
    await aFirmware(db, { product, version: "1.0.0" });
    expect(await check({})).toBe("ALREADY_EXISTS");
  });

  it("two products may have the same version", async () => {
    const { db } = database();
    for (const product of [await aProduct(db), await aProduct(db)]) await aFirmware(db, { product, version: "1.0.0" });
  });

  it.each(["latest", "1.0", "01.0.0", "1.0.0.0", "1.0.0-", "99999999999999999999.0.0"])(
    "the version %j is refused under semver",
    async (version) => {
      const { db } = database();
      const product = await aProduct(db);
      expect(await codeOf(aFirmware(db, { product, version }))).toBe("INVALID_VERSION");
      const requiring = {
        actor: SYSTEM,
        product,
        version: "2.0.0",
        artifact: artifactFacts(),
        requiresVersion: version,
      };
      expect(await codeOf(registerFirmware(db, requiring))).toBe("INVALID_VERSION");
      expect((await listFirmware(db, { product })).items).toEqual([]);
    },
  );

  it.each(["2.0.0", "2.0.0+build", "2.0.1", "3.0.0-rc.1"])(
    "a firmware 2.0.0 that requires %j, which no device below it can have, is refused",
    async (requiresVersion) => {
      const { db } = database();
      const product = await aProduct(db);
      const input = { actor: SYSTEM, product, version: "2.0.0", artifact: artifactFacts(), requiresVersion };
      await expect(registerFirmware(db, input)).rejects.toMatchObject({
        code: "INVALID_FIELD",
        details: { field: "requiresVersion" },
      });
      expect(await codeOf(registerFirmware(db, { ...input, requiresVersion: "2.0.0-rc.1" }))).toBe("no error");
    },
  );

  it.each(["", " ", "1.0.0\0", "1.0.0\ud800", "1".repeat(10_000)])(
    "the version %j is refused as text",
    async (version) => {
      const product = await aProduct(database().db);
      expect(await codeOf(aFirmware(database().db, { product, version }))).toBe("INVALID_FIELD");
    },
  );

  it.each([
    { sizeBytes: 0 },
    { sizeBytes: 1.5 },
    { sizeBytes: 2 ** 53 },
    { sha256: "0".repeat(63) },
    { sha256: "A".repeat(64) },
    { sha1: "" },
    { md5: `${"0".repeat(31)}\0` },
    { fileName: "" },
    { fileName: ".." },
    { fileName: "../etc/passwd" },
    { fileName: "a\\b" },
    { fileName: "a\0b" },
    { fileName: "a".repeat(256) },
    { contentType: "text" },
    { contentType: "text/html\r\nX: y" },
  ])("an artifact with %j is refused", async (fact) => {
    const { db } = database();
    const product = await aProduct(db);
    const artifact = { ...artifactFacts(), ...fact };
    expect(await codeOf(registerFirmware(db, { actor: SYSTEM, product, version: "1.0.0", artifact }))).toBe(
      "INVALID_FIELD",
    );
  });

  it.each([[[""]], [["a\0"]], [["a".repeat(129)]], [Array.from({ length: 65 }, (_, index) => `${index}`)]])(
    "the hardware revisions %j are refused",
    async (hardwareRevisions) => {
      const { db } = database();
      const product = await aProduct(db);
      const input = { actor: SYSTEM, product, version: "1.0.0", artifact: artifactFacts(), hardwareRevisions };
      expect(await codeOf(registerFirmware(db, input))).toBe("INVALID_FIELD");
    },
  );

  it.each(["", "x", "0190", "\0", "00000000-0000-7000-8000-000000000000"])(
    "the id %j belongs to nothing",
    async (id) => {
      expect(await codeOf(getFirmware(database().db, { firmwareId: id }))).toBe("NOT_FOUND");
    },
  );

  it("firmware is listed newest first, by state where one is asked for, each with its own rollouts", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const draft = await aFirmware(db, { product, version: "1.0.0" });
    const first = await aReleasedFirmware(db, { product, version: "1.1.0" });
    const second = await aReleasedFirmware(db, { product, version: "1.2.0" });
    expect((await listFirmware(db, { product })).items).toEqual([second, first, draft]);
    expect((await listFirmware(db, { product, state: "draft" })).items).toEqual([draft]);
    expect(second.rollouts.map(({ id }) => id)).not.toEqual(first.rollouts.map(({ id }) => id));
    expect(await codeOf(listFirmware(db, { product: uniqueName("nothing") }))).toBe("NOT_FOUND");
  });
});
