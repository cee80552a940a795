import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import {
  getDevice,
  hashToken,
  listDevices,
  registerDevice,
  rotateDeviceToken,
  schema,
  updateDevice,
} from "../../src/index.ts";
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

  it("a rotated token is another one, and the old hash is gone", async () => {
    const { db } = database();
    const { device, token } = await aDevice(db, await aProduct(db));
    const rotated = await rotateDeviceToken(db, { actor: SYSTEM, deviceId: device.id });
    expect(rotated.device).toEqual(device);
    expect(rotated.token).not.toBe(token);
    const holders = async (text: string) =>
      (
        await db
          .select()
          .from(schema.devices)
          .where(eq(schema.devices.tokenHash, hashToken(text)))
      ).length;
    expect([await holders(token), await holders(rotated.token)]).toEqual([0, 1]);
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

  it.each(["", "a b", "a/b", "../x", "dév", "a#b", "a\0", "a\n", "%41", "a".repeat(129)])(
    "the serial %j is refused",
    async (serial) => {
      const { db } = database();
      const product = await aProduct(db);
      expect(await codeOf(registerDevice(db, { actor: SYSTEM, product, serial }))).toBe("INVALID_FIELD");
      expect(await codeOf(listDevices(db, { serial }))).toBe("INVALID_FIELD");
    },
  );

  it.each([
    { channel: "" },
    { channel: "a\0" },
    { channel: "Ä" },
    { hardwareRevision: "" },
    { hardwareRevision: "\0" },
  ])("%j is refused", async (field) => {
    const { db } = database();
    const product = await aProduct(db);
    const { device } = await aDevice(db, product);
    expect(await codeOf(updateDevice(db, { actor: SYSTEM, deviceId: device.id, ...field }))).toBe("INVALID_FIELD");
    const input = { actor: SYSTEM, product, serial: uniqueName("serial"), ...field };
    expect(await codeOf(registerDevice(db, input))).toBe("INVALID_FIELD");
  });

  it("what belongs to nothing is NOT_FOUND", async () => {
    const { db } = database();
    for (const deviceId of ["", "\0", "1", "00000000-0000-7000-8000-000000000000"]) {
      expect(await codeOf(getDevice(db, { deviceId }))).toBe("NOT_FOUND");
      expect(await codeOf(updateDevice(db, { actor: SYSTEM, deviceId }))).toBe("NOT_FOUND");
      expect(await codeOf(rotateDeviceToken(db, { actor: SYSTEM, deviceId }))).toBe("NOT_FOUND");
    }
    const product = uniqueName("nothing");
    expect(await codeOf(registerDevice(db, { actor: SYSTEM, product, serial: "a" }))).toBe("NOT_FOUND");
    expect(await codeOf(listDevices(db, { product }))).toBe("NOT_FOUND");
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
