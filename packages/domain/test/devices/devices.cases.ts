import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { getDevice, hashToken, listDevices, registerDevice, schema, updateDevice } from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { aDevice, aProduct, SYSTEM, uniqueName } from "../support/records.ts";

export const deviceCases = casesOn("devices", (database) => {
  it("a device is registered on the stable channel and read back", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const serial = uniqueName("A.b:c~d_");
    const { device, token } = await registerDevice(db, { actor: SYSTEM, product, serial, hardwareRevision: "rev b" });
    expect(device).toMatchObject({ product, serial, channel: "stable", hardwareRevision: "rev b", blocked: false });
    expect(device).toMatchObject({ reportedVersion: null, confirmedVersion: null, lastSeenAt: null });
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(await getDevice(db, { deviceId: device.id })).toEqual(device);
  });

  it("of 50 parallel calls with one serial exactly one succeeds and 49 get ALREADY_EXISTS", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const calls = inParallel(50, () => registerDevice(db, { actor: SYSTEM, product, serial: "one" }));
    expect(await tally(calls)).toEqual({ "no error": 1, ALREADY_EXISTS: 49 });
    expect((await listDevices(db, { product })).items).toHaveLength(1);
  });

  it("the token is stored as its hash alone", async () => {
    const { db } = database();
    const { device, token } = await aDevice(db, await aProduct(db));
    const [row] = await db.select().from(schema.devices).where(eq(schema.devices.publicId, device.id));
    expect(row?.tokenHash?.equals(hashToken(token))).toBe(true);
    const [dump] = await database().query(`select d::text as row from devices d where public_id = '${device.id}'`);
    expect(dump?.["row"]).not.toContain(token);
  });

  it("an update changes what is given and leaves the rest", async () => {
    const { db } = database();
    const { device } = await aDevice(db, await aProduct(db));
    const update = (fields: object) => updateDevice(db, { actor: SYSTEM, deviceId: device.id, ...fields });
    expect(await update({ blocked: true })).toEqual({ ...device, blocked: true });
    expect(await update({ channel: "beta", hardwareRevision: "c" })).toMatchObject({ channel: "beta", blocked: true });
    expect(await update({ hardwareRevision: null, blocked: false })).toEqual({ ...device, channel: "beta" });
    expect(await getDevice(db, { deviceId: device.id })).toEqual({ ...device, channel: "beta" });
  });

  it.each(["", "a b", "a/b", "../x", "dév", "a#b", "a\0", "a\n", "%41", "a".repeat(257)])(
    "the serial %j is refused",
    async (serial) => {
      const { db } = database();
      const product = await aProduct(db);
      expect(await codeOf(registerDevice(db, { actor: SYSTEM, product, serial }))).toBe("INVALID_FIELD");
      expect(await codeOf(listDevices(db, { serial }))).toBe("INVALID_FIELD");
    },
  );

  it("what belongs to nothing is NOT_FOUND", async () => {
    const { db } = database();
    for (const deviceId of ["", "\0", "1", "00000000-0000-7000-8000-000000000000"]) {
      expect(await codeOf(getDevice(db, { deviceId }))).toBe("NOT_FOUND");
      expect(await codeOf(updateDevice(db, { actor: SYSTEM, deviceId }))).toBe("NOT_FOUND");
    }
    const product = uniqueName("nothing");
    expect(await codeOf(registerDevice(db, { actor: SYSTEM, product, serial: "a" }))).toBe("NOT_FOUND");
    expect(await codeOf(listDevices(db, { product }))).toBe("NOT_FOUND");
  });

  it("groups are set, added and taken away, each once and in alphabetical order", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const input = { actor: SYSTEM, product, serial: uniqueName("serial"), groups: ["b", "a"] };
    const { device } = await registerDevice(db, input);
    expect(device.groups).toEqual(["a", "b"]);
    const groups = async (changes: object) =>
      (await updateDevice(db, { actor: SYSTEM, deviceId: device.id, ...changes })).groups;
    expect(await groups({ addGroups: ["c", "a"], removeGroups: ["b", "z"] })).toEqual(["a", "c"]);
    expect(await groups({ groups: ["x"] })).toEqual(["x"]);
    expect(await groups({ groups: [] })).toEqual([]);
  });

  it("attributes are merged by name, and null removes one", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const attributes = { modem: "1.2", ram: 512, secure: true, constructor: "x" };
    const { device } = await registerDevice(db, { actor: SYSTEM, product, serial: uniqueName("serial"), attributes });
    expect(device.attributes).toEqual(attributes);
    const change = { modem: "1.3", ram: null, absent: null, größe: "L" };
    const { attributes: changed } = await updateDevice(db, { actor: SYSTEM, deviceId: device.id, attributes: change });
    expect(changed).toEqual({ modem: "1.3", secure: true, constructor: "x", größe: "L" });
    expect((await getDevice(db, { deviceId: device.id })).attributes).toEqual(changed);
  });

  it("a device is blocked with a reason, which unblocking clears", async () => {
    const { db } = database();
    const { device } = await aDevice(db, await aProduct(db));
    const update = (fields: object) => updateDevice(db, { actor: SYSTEM, deviceId: device.id, ...fields });
    expect(await codeOf(update({ blockedReason: "stolen" }))).toBe("INVALID_FIELD");
    const blocked = { blocked: true, blockedReason: "stolen" };
    expect(await update(blocked)).toMatchObject(blocked);
    expect(await update({ channel: "beta" })).toMatchObject(blocked);
    expect(await codeOf(update({ blocked: false, blockedReason: "found" }))).toBe("INVALID_FIELD");
    expect(await update({ blocked: false })).toMatchObject({ blocked: false, blockedReason: null });
  });

  it.each([
    { channel: "" },
    { channel: "a\0" },
    { channel: "Ä" },
    { hardwareRevision: "" },
    { hardwareRevision: "\0" },
    { groups: ["a", "a"] },
    { groups: [""] },
    { groups: ["a;b"] },
    { groups: Array.from({ length: 65 }, (_, n) => `g${n}`) },
    { attributes: { "": "a" } },
    { attributes: { "a=b": "a" } },
    { attributes: { a: "\0" } },
    { attributes: { a: "\ud800" } },
    { attributes: { a: "x".repeat(257) } },
    { attributes: { a: Number.NaN } },
    { attributes: { ["x".repeat(129)]: 1 } },
    { attributes: { _proto: 1 } },
    { attributes: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`a${n}`, n])) },
    { timeZone: "Mars/Olympus" },
    { timeZone: "+02:00" },
    { timeZone: "" },
  ])("%j is refused when a device is registered and when it is changed", async (field) => {
    const { db } = database();
    const product = await aProduct(db);
    const { device } = await aDevice(db, product);
    expect(await codeOf(updateDevice(db, { actor: SYSTEM, deviceId: device.id, ...field }))).toBe("INVALID_FIELD");
    const input = { actor: SYSTEM, product, serial: uniqueName("serial"), ...field };
    expect(await codeOf(registerDevice(db, input))).toBe("INVALID_FIELD");
  });

  it("more groups or attributes than a device may have are refused, also in several steps", async () => {
    const { db } = database();
    const { device } = await aDevice(db, await aProduct(db));
    const update = (fields: object) => updateDevice(db, { actor: SYSTEM, deviceId: device.id, ...fields });
    const names = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);
    const valued = (prefix: string, count: number) => Object.fromEntries(names(prefix, count).map((name) => [name, 1]));
    await update({ addGroups: names("a", 40), attributes: valued("a", 40) });
    expect(await codeOf(update({ addGroups: names("b", 40) }))).toBe("INVALID_FIELD");
    expect(await codeOf(update({ attributes: valued("b", 40) }))).toBe("INVALID_FIELD");
    const made = await update({ addGroups: names("b", 24), attributes: valued("b", 24), timeZone: "Europe/Berlin" });
    expect([made.groups.length, Object.keys(made.attributes).length, made.timeZone]).toEqual([64, 64, "Europe/Berlin"]);
  });

  it("devices are listed by product and by serial, across products", async () => {
    const { db } = database();
    const [one, two] = [await aProduct(db), await aProduct(db)];
    const serial = uniqueName("twin");
    const made = [];
    for (const product of [one, two]) made.push((await registerDevice(db, { actor: SYSTEM, product, serial })).device);
    await aDevice(db, two);
    expect((await listDevices(db, { serial })).items).toEqual(made.toReversed());
    expect((await listDevices(db, { serial, product: one })).items).toEqual([made[0]]);
    expect((await listDevices(db, { product: two })).items).toHaveLength(2);
  });
});
