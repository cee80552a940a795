import { expect, it } from "vitest";
import {
  type AttemptState,
  createRollout,
  getUpgrade,
  listAttemptEvents,
  listUpgrades,
  type PageRequest,
  schema,
} from "../../src/index.ts";
import { anAttempt } from "../support/attempts.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf } from "../support/errors.ts";
import { aDevice, aProduct, aReleasedFirmware, SYSTEM } from "../support/records.ts";

export const upgradeCases = casesOn("upgrades", (database) => {
  it("an upgrade is listed once, in the state of its newest attempt", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const { device } = await aDevice(db, product);
    const pair = { deviceId: device.id, firmwareId: firmware.id };
    await anAttempt(db, { ...pair, state: "failed" });
    const { attemptId, upgradeId } = await anAttempt(db, { ...pair, state: "downloading" });
    const { items } = await listUpgrades(db, pair);
    expect(items).toEqual([
      {
        id: upgradeId,
        device: { id: device.id, serial: device.serial, product },
        firmware: { id: firmware.id, version: "1.0.0" },
        fromVersion: null,
        attemptsForgiven: 0,
        cancelled: false,
        attempt: {
          ...{ id: attemptId, number: 2, state: "downloading", failureCode: null, failureMessage: null },
          rolloutId: firmware.rollouts[0]?.id,
          ...{ openedAt: expect.any(Date), updatedAt: expect.any(Date), closedAt: null, deadlineAt: null },
        },
        createdAt: expect.any(Date),
      },
    ]);
    expect((await listUpgrades(db, { ...pair, state: "downloading" })).items).toEqual(items);
    expect((await listUpgrades(db, { ...pair, state: "failed" })).items).toEqual([]);
  });

  it("upgrades are listed by device, by firmware and by state, newest first", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const [old, recent] = [
      await aReleasedFirmware(db, { product, version: "1.0.0" }),
      await aReleasedFirmware(db, { product, version: "1.1.0" }),
    ];
    const [one, two] = [(await aDevice(db, product)).device, (await aDevice(db, product)).device];
    const make = async (deviceId: string, firmwareId: string, state: "succeeded" | "offered") =>
      (await anAttempt(db, { deviceId, firmwareId, state })).upgradeId;
    const a = await make(one.id, old.id, "succeeded");
    const b = await make(two.id, old.id, "offered");
    const c = await make(one.id, recent.id, "offered");
    const idsOf = async (filter: object) => (await listUpgrades(db, filter)).items.map(({ id }) => id);
    expect(await idsOf({ deviceId: one.id })).toEqual([c, a]);
    expect(await idsOf({ firmwareId: old.id })).toEqual([b, a]);
    expect(await idsOf({ firmwareId: old.id, state: "succeeded" })).toEqual([a]);
    expect((await idsOf({ state: "offered" })).slice(0, 2)).toEqual([c, b]);
    expect((await idsOf({})).slice(0, 3)).toEqual([c, b, a]);
  });

  it("upgrades of a rollout are those whose newest attempt is in a state under it", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const { id: firmwareId, rollouts } = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const first = rollouts[0]?.id as string;
    const { id: second } = await createRollout(db, { actor: SYSTEM, firmwareId });
    const make = async (...attempts: (readonly [rolloutId: string, AttemptState])[]) => {
      const { device } = await aDevice(db, product);
      let upgradeId = "";
      for (const [rolloutId, state] of attempts) {
        ({ upgradeId } = await anAttempt(db, { deviceId: device.id, firmwareId, rolloutId, state }));
      }
      return upgradeId;
    };
    const a = await make([first, "failed"]);
    const b = await make([first, "failed"], [second, "failed"]);
    const c = await make([first, "failed"], [first, "offered"]);
    const idsOf = async (rolloutId: string, state: AttemptState) =>
      (await listUpgrades(db, { rolloutId, state })).items.map(({ id, attempt }) => [id, attempt.rolloutId]);
    expect(await idsOf(first, "failed")).toEqual([[a, first]]);
    expect(await idsOf(first, "offered")).toEqual([[c, first]]);
    expect(await idsOf(second, "failed")).toEqual([[b, second]]);
    expect(await codeOf(listUpgrades(db, { rolloutId: first }))).toBe("INVALID_FIELD");
    expect(await codeOf(listUpgrades(db, { rolloutId: firmwareId, state: "failed" }))).toBe("NOT_FOUND");
  });

  it("an upgrade's history holds its attempts and their events in order", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const { device } = await aDevice(db, product);
    const pair = { deviceId: device.id, firmwareId: firmware.id };
    const first = await anAttempt(db, { ...pair, state: "failed" });
    const second = await anAttempt(db, { ...pair, state: "offered" });
    const deviceTime = new Date("2099-01-01T00:00:00.001Z");
    await db.insert(schema.attemptEvents).values([
      { attemptId: second.attemptId, seq: 1, toState: "offered" },
      {
        attemptId: first.attemptId,
        seq: 2,
        toState: "failed",
        fromState: "offered",
        reportedState: "failed",
        deviceTime,
      },
      { attemptId: first.attemptId, seq: 1, toState: "offered", details: ["a", 'b "c", {d}\\'] },
    ]);
    const history = await getUpgrade(db, { upgradeId: first.upgradeId });
    expect(history.attempt.id).toBe(second.attemptId);
    expect(history.attempts.map(({ id, number }) => [id, number])).toEqual([
      [first.attemptId, 1],
      [second.attemptId, 2],
    ]);
    const [old, current] = history.attempts;
    expect(old?.events).toMatchObject([
      { seq: 1, reportedState: null, fromState: null, toState: "offered", details: ["a", 'b "c", {d}\\'] },
      { seq: 2, reportedState: "failed", fromState: "offered", toState: "failed", details: [], deviceTime },
    ]);
    expect(Object.keys(old?.events[0] ?? {})).not.toContain("attemptId");
    expect(current?.events).toHaveLength(1);
  });

  it("of a long history the last 50 events are given at once, and a cursor leads to those before them", async () => {
    const { db, query } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const { device } = await aDevice(db, product);
    const pair = { deviceId: device.id, firmwareId: firmware.id };
    const long = await anAttempt(db, { ...pair, state: "failed" });
    const short = await anAttempt(db, { ...pair, state: "offered" });
    await query(`
      insert into attempt_events (attempt_id, seq, to_state)
      select ${long.attemptId}, n, 'downloading' from generate_series(1, 120) n
      union all select ${short.attemptId}, n, 'offered' from generate_series(1, 50) n
    `);
    const { upgradeId } = long;
    const sequence = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
    const seqs = (events: readonly { readonly seq: number }[]) => events.map(({ seq }) => seq);

    const [first, second] = (await getUpgrade(db, { upgradeId })).attempts;
    expect(seqs(first?.events ?? [])).toEqual(sequence(71, 120));
    expect(seqs(second?.events ?? [])).toEqual(sequence(1, 50));
    expect(second?.earlierEvents).toBeUndefined();

    const list = (number: number, page: PageRequest = {}) => listAttemptEvents(db, { upgradeId, number, ...page });
    const earlier = await list(1, { cursor: first?.earlierEvents, limit: 60 });
    expect(seqs(earlier.items)).toEqual(sequence(11, 70).toReversed());
    const rest = await list(1, { cursor: earlier.nextCursor });
    expect(seqs(rest.items)).toEqual(sequence(1, 10).toReversed());
    expect(rest.nextCursor).toBeUndefined();
    const whole = await list(1, { limit: 200 });
    expect(seqs(whole.items)).toEqual(sequence(1, 120).toReversed());
    expect(whole.items.slice(0, 50).toReversed()).toEqual(first?.events);
    expect((await list(2)).nextCursor).toBeUndefined();
    expect(await codeOf(list(2, { cursor: first?.earlierEvents }))).toBe("INVALID_CURSOR");
  });

  it("events of what is no attempt of the upgrade are NOT_FOUND, and a bad number is refused", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const { device } = await aDevice(db, product);
    const { upgradeId } = await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state: "offered" });
    expect(await codeOf(listAttemptEvents(db, { upgradeId, number: 1 }))).toBe("no error");
    expect(await codeOf(listAttemptEvents(db, { upgradeId, number: 2 }))).toBe("NOT_FOUND");
    for (const id of ["", "\0", "00000000-0000-7000-8000-000000000000"]) {
      expect(await codeOf(listAttemptEvents(db, { upgradeId: id, number: 1 }))).toBe("NOT_FOUND");
    }
    for (const number of [0, -1, 1.5, Number.NaN, 2 ** 31]) {
      expect(await codeOf(listAttemptEvents(db, { upgradeId, number }))).toBe("INVALID_FIELD");
    }
  });

  it("what belongs to nothing is NOT_FOUND, and an unknown state is refused", async () => {
    const { db } = database();
    for (const id of ["", "\0", "00000000-0000-7000-8000-000000000000"]) {
      expect(await codeOf(getUpgrade(db, { upgradeId: id }))).toBe("NOT_FOUND");
      expect(await codeOf(listUpgrades(db, { deviceId: id }))).toBe("NOT_FOUND");
      expect(await codeOf(listUpgrades(db, { firmwareId: id }))).toBe("NOT_FOUND");
    }
    expect(await codeOf(listUpgrades(db, { state: "done" as "failed" }))).toBe("INVALID_FIELD");
  });
});
