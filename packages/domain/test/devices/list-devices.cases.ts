import { expect, it } from "vitest";
import { type DeviceFilter, hashToken, listDevices, registerDevice, updateDevice } from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf } from "../support/errors.ts";
import { startChecks } from "../support/fleet.ts";
import { aProduct, SYSTEM, uniqueName } from "../support/records.ts";

export const listDevicesCases = casesOn("the search for devices", (database) => {
  /** Four devices that differ in everything, and a function that finds serials among them. */
  async function setUp() {
    const { db } = database();
    const product = await aProduct(db);
    const register = (serial: string, fields: object = {}) =>
      registerDevice(db, { actor: SYSTEM, product, serial, ...fields });
    await register("b-1", { groups: ["pilot"], attributes: { modem: "1.2", ram: 512, secure: true } });
    await register("a-2", { groups: ["pilot", "berlin"], attributes: { modem: "1.2", ram: "512", secure: "true" } });
    await register("A-3", { channel: "beta", attributes: { modem: "" } });
    const { device, token } = await register("a_4");
    await updateDevice(db, { actor: SYSTEM, deviceId: device.id, blocked: true });
    const checks = startChecks(db);
    await checks.checkForUpdate({ tokenHash: hashToken(token), reported: { version: "9.9" } });
    await checks.close();
    const find = async (filter: DeviceFilter) => (await listDevices(db, { product, ...filter })).items.map(serialOf);
    return { db, product, find };
  }

  it.each<[DeviceFilter, string[]]>([
    [{}, ["a_4", "A-3", "a-2", "b-1"]],
    [{ serialPrefix: "a" }, ["a-2", "a_4"]],
    [{ serialPrefix: "a_" }, ["a_4"]],
    [{ serialPrefix: "a-2" }, ["a-2"]],
    [{ serialPrefix: "~" }, []],
    [{ group: "pilot" }, ["a-2", "b-1"]],
    [{ group: "pilo" }, []],
    [{ attribute: { name: "modem", value: "1.2" } }, ["a-2", "b-1"]],
    [{ attribute: { name: "modem", value: "" } }, ["A-3"]],
    [{ attribute: { name: "ram", value: "512" } }, ["a-2", "b-1"]],
    [{ attribute: { name: "ram", value: "512.0" } }, ["b-1"]],
    [{ attribute: { name: "secure", value: "true" } }, ["a-2", "b-1"]],
    [{ attribute: { name: "absent", value: "x" } }, []],
    [{ channel: "beta" }, ["A-3"]],
    [{ version: "9.9" }, ["a_4"]],
    [{ blocked: true }, ["a_4"]],
    [{ blocked: false, group: "berlin" }, ["a-2"]],
    [{ serialPrefix: "a", blocked: true }, ["a_4"]],
    [{ notSeenSince: new Date("2020-01-01") }, ["A-3", "a-2", "b-1"]],
    [{ notSeenSince: new Date("2020-01-01"), group: "berlin" }, ["a-2"]],
    [{ seenSince: new Date("2020-01-01"), blocked: true }, ["a_4"]],
    [{ seenSince: new Date("2020-01-01"), blocked: false }, []],
  ])("by %j finds %j", async (filter, serials) => {
    const { find } = await setUp();
    expect(await find(filter)).toEqual(serials);
  });

  it("pages by a serial's beginning lead through everything once, in the order of the serials", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const serials = ["z", "x:3", "x", "x-1", "X-1", "x~9", "x.5", "x_2"];
    for (const serial of serials) await registerDevice(db, { actor: SYSTEM, product, serial });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await listDevices(db, { product, serialPrefix: "x", limit: 2, cursor });
      seen.push(...page.items.map(serialOf));
      cursor = page.nextCursor;
      // What was seen last may go at any time.
      if (cursor !== undefined) await database().query(`delete from devices where serial = '${seen.at(-1)}'`);
    } while (cursor !== undefined);
    expect(seen).toEqual(["x", "x-1", "x.5", "x:3", "x_2", "x~9"]);
  });

  it("pages of silent devices lead through all of them once, and look at 5 000 each", async () => {
    const { db } = database();
    const product = await aProduct(db);
    await database().query(`
      insert into devices (public_id, product_id, serial, token_hash, channel, last_seen_at)
      select gen_random_uuid(), p.id, 'quiet-' || n, sha256(convert_to(p.name || n, 'UTF8')), 'stable',
        case when n in (1, 2, 7000) then timestamptz '2030-01-01' when n = 6999 then null else '2030-02-01' end
      from products p, generate_series(1, 12000) n where p.name = '${product}'
    `);
    const pagesOf = async (filter: DeviceFilter & { limit?: number }) => {
      const pages: string[][] = [];
      let cursor: string | undefined;
      do {
        const page = await listDevices(db, { product, limit: 2, ...filter, cursor });
        pages.push(page.items.map(serialOf));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return pages;
    };
    const silent = [[], ["quiet-7000", "quiet-6999"], ["quiet-2", "quiet-1"]];
    expect(await pagesOf({ notSeenSince: new Date("2030-01-15") })).toEqual(silent);
    const between = { seenSince: new Date("2029-12-31"), notSeenSince: new Date("2030-01-01T00:00:01Z") };
    expect((await pagesOf(between)).flat()).toEqual(["quiet-7000", "quiet-2", "quiet-1"]);
    expect((await pagesOf({ seenSince: new Date("2030-01-15"), limit: 200 })).flat()).toHaveLength(11_996);
    expect(await pagesOf({ notSeenSince: new Date("2030-01-15"), channel: "other" })).toEqual([[]]);
  });

  it("a cursor of one order is refused in the other", async () => {
    const { db } = database();
    const product = await aProduct(db);
    for (const serial of ["x1", "x2"]) await registerDevice(db, { actor: SYSTEM, product, serial });
    const byId = (await listDevices(db, { product, limit: 1 })).nextCursor;
    const bySerial = (await listDevices(db, { product, serialPrefix: "x", limit: 1 })).nextCursor;
    expect(await codeOf(listDevices(db, { product, cursor: bySerial }))).toBe("INVALID_CURSOR");
    const notSeenSince = new Date();
    expect(await codeOf(listDevices(db, { product, notSeenSince, cursor: byId }))).toBe("INVALID_CURSOR");
    expect(await codeOf(listDevices(db, { product, serialPrefix: "x", cursor: byId }))).toBe("INVALID_CURSOR");
  });

  it.each<DeviceFilter>([
    { serialPrefix: "a" },
    { notSeenSince: new Date(Number.NaN) },
    { seenSince: new Date(8.64e15) },
    { channel: "stable" },
    { version: "1.0.0" },
    { group: "a b" },
    { attribute: { name: "", value: "x" } },
    { attribute: { name: "a", value: "\0" } },
  ])("by %j is refused without a product, or for what nothing can have", async (filter) => {
    expect(await codeOf(listDevices(database().db, filter))).toBe("INVALID_FIELD");
  });

  it("by a serial's beginning is refused together with the time it was seen", async () => {
    const { db, product } = await setUp();
    const both = { product, serialPrefix: "a", seenSince: new Date() };
    expect(await codeOf(listDevices(db, both))).toBe("INVALID_FIELD");
  });

  it("in an unknown product is NOT_FOUND", async () => {
    expect(await codeOf(listDevices(database().db, { product: uniqueName("none"), channel: "beta" }))).toBe(
      "NOT_FOUND",
    );
  });
});

function serialOf({ serial }: { readonly serial: string }): string {
  return serial;
}
