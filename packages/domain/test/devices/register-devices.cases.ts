import { expect, it } from "vitest";
import {
  type DeviceLine,
  type ExistingDevices,
  hashToken,
  type LineProblem,
  type ListedDevice,
  listAudit,
  listDevices,
  OtaError,
  registerDevice,
  registerDevices,
  rotateDeviceToken,
} from "../../src/index.ts";
import { newToken } from "../../src/tokens.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { startChecks } from "../support/fleet.ts";
import { aProduct, SYSTEM, uniqueName } from "../support/records.ts";

export const registerDevicesCases = casesOn("lists of devices", (database) => {
  async function setUp() {
    const { db } = database();
    const product = await aProduct(db);
    const register = (devices: readonly ListedDevice[], existing?: ExistingDevices) =>
      registerDevices(db, { actor: SYSTEM, product, existing, lines: linesOf(devices) });
    const all = async () => (await listDevices(db, { product, limit: 200 })).items;
    return { db, product, register, all };
  }

  it("are registered whole, and answered in their order, each with a token that works", async () => {
    const { db, register, all } = await setUp();
    const facts = { channel: "beta", hardwareRevision: "c", groups: ["g2", "g1"], timeZone: "Asia/Tokyo" };
    const lines = await register([{ serial: "z", ...facts, attributes: { a: 1 } }, { serial: "a" }, { serial: "m" }]);
    expect(lines.map(({ line, serial, outcome }) => [line, serial, outcome])).toEqual([
      [1, "z", "registered"],
      [2, "a", "registered"],
      [3, "m", "registered"],
    ]);
    const checks = startChecks(db);
    for (const { id, token = "" } of lines) {
      expect(await checks.checkForUpdate({ tokenHash: hashToken(token) })).toMatchObject({ device: { id } });
    }
    const found = (await all()).find(({ serial }) => serial === "z");
    expect(found).toMatchObject({ ...facts, groups: ["g1", "g2"], attributes: { a: 1 }, registeredBy: "bulk" });
  });

  it("a token from another server is taken as it is, and not shown again", async () => {
    const { db, register } = await setUp();
    const token = newToken();
    const [line] = await register([{ serial: "moved", token }]);
    expect(line?.token).toBeUndefined();
    const answer = await startChecks(db).checkForUpdate({ tokenHash: hashToken(token) });
    expect(answer.device.serial).toBe("moved");
  });

  it("with anything wrong register nothing, and tell every problem by its line", async () => {
    const { db, product, register, all } = await setUp();
    const token = newToken();
    await registerDevice(db, { actor: SYSTEM, product, serial: "there" });
    const problems = await problemsOf(
      register([
        { serial: "fine" },
        { serial: "a b" },
        { serial: "twice" },
        { serial: "twice" },
        { serial: "one", token },
        { serial: "two", token },
        { serial: "weak", token: "short" },
        { serial: "zone", timeZone: "Nowhere/At_all" },
        { serial: "named", attributes: { "=": 1 } },
      ]),
    );
    expect(problems.map(({ line, field, code }) => [line, field, code])).toEqual([
      [2, "serial", "INVALID_FIELD"],
      [4, "serial", "DUPLICATE"],
      [6, "token", "DUPLICATE"],
      [7, "token", "INVALID_FIELD"],
      [8, "timeZone", "INVALID_FIELD"],
      [9, "attributes", "INVALID_FIELD"],
    ]);
    expect(JSON.stringify(problems)).not.toContain(token);
    expect((await all()).map(({ serial }) => serial)).toEqual(["there"]);
    expect((await listAudit(db, { subjectId: product })).items.map(({ action }) => action)).toEqual(["product.create"]);
  });

  it("devices that are there already are told beside all else that is wrong, unless they may be", async () => {
    const { register } = await setUp();
    await register([{ serial: "there" }]);
    const list = [{ serial: "a b" }, { serial: "there" }, { serial: "new" }];
    const codesOf = async (existing?: "skip" | "update") =>
      (await problemsOf(register(list, existing))).map(({ line, code }) => [line, code]);
    expect(await codesOf()).toEqual([
      [1, "INVALID_FIELD"],
      [2, "ALREADY_EXISTS"],
    ]);
    expect(await codesOf("skip")).toEqual([[1, "INVALID_FIELD"]]);
    expect(await codesOf("update")).toEqual([[1, "INVALID_FIELD"]]);
  });

  it("serials and tokens that others have already refuse the whole list", async () => {
    const { db, product, register, all } = await setUp();
    const { device, token } = await registerDevice(db, { actor: SYSTEM, product, serial: "there" });
    const rotated = await rotateDeviceToken(db, { actor: SYSTEM, deviceId: device.id });
    const problems = await problemsOf(
      register([{ serial: "new" }, { serial: "there" }, { serial: "x", token }, { serial: "y", token: rotated.token }]),
    );
    expect(problems.map(({ line, field, code }) => [line, field, code])).toEqual([
      [2, "serial", "ALREADY_EXISTS"],
      [3, "token", "ALREADY_EXISTS"],
      [4, "token", "ALREADY_EXISTS"],
    ]);
    expect(await all()).toHaveLength(1);
  });

  it("skip what is there, where that is asked for", async () => {
    const { register, all } = await setUp();
    await register([{ serial: "a", channel: "beta" }, { serial: "b" }]);
    const lines = await register([{ serial: "c" }, { serial: "a", channel: "stable" }], "skip");
    expect(lines.map(({ serial, outcome, token }) => [serial, outcome, token === undefined])).toEqual([
      ["c", "registered", false],
      ["a", "skipped", true],
    ]);
    expect((await all()).map(({ serial, channel }) => [serial, channel])).toEqual([
      ["c", "stable"],
      ["b", "stable"],
      ["a", "beta"],
    ]);
  });

  it("update what is there, where that is asked for, with an audit entry for each that is changed", async () => {
    const { db, register, all } = await setUp();
    const before = { channel: "beta", groups: ["g"], attributes: { a: 1, b: 2 } };
    const [a] = await register([{ serial: "a", ...before }, { serial: "b" }]);
    const lines = await register(
      [{ serial: "a", attributes: { b: 3 }, timeZone: "Asia/Tokyo" }, { serial: "b" }],
      "update",
    );
    expect(lines.map(({ serial, outcome, token }) => [serial, outcome, token])).toEqual([
      ["a", "updated", undefined],
      ["b", "unchanged", undefined],
    ]);
    const after = { ...before, attributes: { a: 1, b: 3 }, timeZone: "Asia/Tokyo" };
    expect((await all()).find(({ serial }) => serial === "a")).toMatchObject(after);
    const [entry] = (await listAudit(db, { subjectId: a?.id })).items;
    expect(entry).toMatchObject({ action: "device.update", before, after });
    expect((await listAudit(db, { subjectId: lines[1]?.id })).items).toEqual([]);
  });

  it("refuse a token for a device that is there, and attributes that it has no room for", async () => {
    const { register, all } = await setUp();
    const many = (prefix: string) => Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`${prefix}${n}`, n]));
    await register([{ serial: "a" }, { serial: "b", attributes: many("x") }]);
    const list = [{ serial: "a", token: newToken() }, { serial: "b", attributes: many("y") }, { serial: "c" }];
    const problems = await problemsOf(register(list, "update"));
    expect(problems.map(({ line, field, code }) => [line, field, code])).toEqual([
      [1, "token", "ALREADY_EXISTS"],
      [2, "attributes", "INVALID_FIELD"],
    ]);
    expect(await all()).toHaveLength(2);
  });

  it("of 8 at once with the same serials in other orders, one registers them all", async () => {
    const { register, all } = await setUp();
    const serials = Array.from({ length: 100 }, (_, n) => ({ serial: `s${n}` }));
    const calls = inParallel(8, (n) => register(n % 2 === 0 ? serials : serials.toReversed()));
    expect(await tally(calls)).toEqual({ "no error": 1, LINES_INVALID: 7 });
    expect(await all()).toHaveLength(100);
  });

  it("longer than 10 000 are refused at the first line too many, and read no further", async () => {
    const { db, product, all } = await setUp();
    let read = 0;
    async function* endless(): AsyncGenerator<DeviceLine> {
      for (;;) {
        read += 1;
        yield { line: read, device: { serial: `s${read}` } };
      }
    }
    const problems = await problemsOf(registerDevices(db, { actor: SYSTEM, product, lines: endless() }));
    expect(problems.map(({ line, code }) => [line, code])).toEqual([[10_001, "TOO_MANY"]]);
    expect(read).toBe(10_001);
    expect(await all()).toEqual([]);
  });

  it("with thousands of problems tell the first 1 000, and how many there are", async () => {
    const { register } = await setUp();
    const list = Array.from({ length: 5_000 }, () => ({ serial: "a b" }));
    const details = await register(list).catch((error: unknown) => (error instanceof OtaError ? error.details : error));
    expect(details).toMatchObject({ errorsTotal: 5_000 });
    const problems = await problemsOf(register(list));
    expect(problems.map(({ line }) => line)).toEqual(Array.from({ length: 1_000 }, (_, n) => n + 1));
  });

  it("without a device are fine, and of an unknown product are NOT_FOUND before a line is read", async () => {
    const { db, register } = await setUp();
    expect(await register([])).toEqual([]);
    const lines: Iterable<DeviceLine> = {
      [Symbol.iterator]: () => {
        throw new Error("It was read.");
      },
    };
    const input = { actor: SYSTEM, product: uniqueName("none"), lines };
    expect(await codeOf(registerDevices(db, input))).toBe("NOT_FOUND");
  });
});

function linesOf(devices: readonly ListedDevice[]): readonly DeviceLine[] {
  return devices.map((device, index) => ({ line: index + 1, device }));
}

async function problemsOf(call: Promise<unknown>): Promise<readonly LineProblem[]> {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof OtaError) || error.code !== "LINES_INVALID") throw error ?? new Error("It was not refused.");
  return error.details?.["errors"] as LineProblem[];
}
