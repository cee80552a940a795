import { expect, it } from "vitest";
import {
  createRollout,
  getFirmware,
  getProduct,
  listAudit,
  releaseFirmware,
  withdrawFirmware,
} from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { aFirmware, aProduct, aReleasedFirmware, SYSTEM } from "../support/records.ts";

export const releaseCases = casesOn("releaseFirmware", (database) => {
  it("offers the firmware to all of the stable channel by a running rollout", async () => {
    const { db } = database();
    const released = await aReleasedFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    expect(released).toMatchObject({ state: "released", releasedAt: expect.any(Date), withdrawnAt: null });
    expect(released.rollouts).toMatchObject([
      { channel: "stable", state: "running", priority: 0, percentageBasisPoints: 10_000, allowDowngrade: false },
    ]);
    expect(await getFirmware(db, { firmwareId: released.id })).toEqual(released);
  });

  it("increments the catalog revision by one, and not at all where nothing changes", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const { id: firmwareId } = await aFirmware(db, { product, version: "1.0.0" });
    expect((await getProduct(db, { product })).catalogRevision).toBe(0n);
    await releaseFirmware(db, { actor: SYSTEM, firmwareId, startRollout: true });
    await releaseFirmware(db, { actor: SYSTEM, firmwareId, startRollout: true });
    expect((await getProduct(db, { product })).catalogRevision).toBe(1n);
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId });
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId });
    expect((await getProduct(db, { product })).catalogRevision).toBe(2n);
  });

  it("starts one rollout and writes one audit row, however many call it at once", async () => {
    const { db } = database();
    const { id: firmwareId } = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    const calls = inParallel(20, () => releaseFirmware(db, { actor: SYSTEM, firmwareId, startRollout: true }));
    expect(await tally(calls)).toEqual({ "no error": 20 });
    expect((await getFirmware(db, { firmwareId })).rollouts).toHaveLength(1);
    const audit = await listAudit(db, { subjectId: firmwareId });
    expect(audit.items.filter(({ action }) => action === "firmware.release")).toHaveLength(1);
  });

  it("names in the audit log the rollout that it starts, and those that a withdrawal stops", async () => {
    const { db } = database();
    const released = await aReleasedFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    const firmwareId = released.id;
    const { id: draftId } = await createRollout(db, { actor: SYSTEM, firmwareId, channel: "beta" });
    const [{ id: rolloutId } = { id: "" }] = released.rollouts;
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId });
    const { items } = await listAudit(db, { subjectId: firmwareId });
    expect(items.slice(0, 2)).toMatchObject([
      {
        action: "firmware.withdraw",
        after: {
          stoppedRollouts: [
            { rolloutId, channel: "stable" },
            { rolloutId: draftId, channel: "beta" },
          ],
        },
      },
      { action: "firmware.release", after: { rolloutId, channel: "stable" } },
    ]);
  });

  it("offers a released firmware to a further channel", async () => {
    const { db } = database();
    const { id: firmwareId } = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    const beta = await releaseFirmware(db, {
      actor: SYSTEM,
      firmwareId,
      startRollout: true,
      channel: "beta",
      priority: 5,
    });
    const both = await releaseFirmware(db, {
      actor: SYSTEM,
      firmwareId,
      startRollout: true,
      channel: "stable",
      allowDowngrade: true,
    });
    expect(both.rollouts).toMatchObject([
      { channel: "stable", priority: 0, allowDowngrade: true },
      { channel: "beta", priority: 5, allowDowngrade: false },
    ]);
    expect(both.releasedAt).toEqual(beta.releasedAt);
  });

  it("refuses other terms for a channel that is offered the firmware already", async () => {
    const { db } = database();
    const { id: firmwareId } = await aReleasedFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    expect(await codeOf(releaseFirmware(db, { actor: SYSTEM, firmwareId, startRollout: true, priority: 1 }))).toBe(
      "ALREADY_EXISTS",
    );
    expect(
      await codeOf(releaseFirmware(db, { actor: SYSTEM, firmwareId, startRollout: true, allowDowngrade: true })),
    ).toBe("ALREADY_EXISTS");
  });

  it("starts no rollout unless one is asked for, and then refuses options of one", async () => {
    const { db } = database();
    const { id: firmwareId } = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    const without = { actor: SYSTEM, firmwareId };
    expect(await codeOf(releaseFirmware(db, { ...without, channel: "beta" }))).toBe("INVALID_FIELD");
    expect(await releaseFirmware(db, without)).toMatchObject({ state: "released", rollouts: [] });
    expect(await codeOf(releaseFirmware(db, { ...without, startRollout: false, priority: 1 }))).toBe("INVALID_FIELD");
    expect(await releaseFirmware(db, { ...without, startRollout: true })).toMatchObject({
      rollouts: [{ channel: "stable" }],
    });
  });

  it.each([{ channel: "" }, { channel: "a b" }, { channel: "a\0" }, { priority: 1001 }, { priority: 0.5 }])(
    "refuses %j",
    async (field) => {
      const { db } = database();
      const { id: firmwareId } = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
      expect(await codeOf(releaseFirmware(db, { actor: SYSTEM, firmwareId, startRollout: true, ...field }))).toBe(
        "INVALID_FIELD",
      );
      expect(await getFirmware(db, { firmwareId })).toMatchObject({ state: "draft", rollouts: [] });
    },
  );

  it("answers NOT_FOUND for what is no firmware", async () => {
    const firmwareId = "00000000-0000-7000-8000-000000000000";
    expect(await codeOf(releaseFirmware(database().db, { actor: SYSTEM, firmwareId }))).toBe("NOT_FOUND");
  });
});

export const withdrawCases = casesOn("withdrawFirmware", (database) => {
  it("stops every rollout of the firmware, and of no other", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const other = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const { id: firmwareId } = await aReleasedFirmware(db, { product, version: "1.1.0" });
    await releaseFirmware(db, { actor: SYSTEM, firmwareId, startRollout: true, channel: "beta" });
    const withdrawn = await withdrawFirmware(db, { actor: SYSTEM, firmwareId });
    expect(withdrawn).toMatchObject({ state: "withdrawn", withdrawnAt: expect.any(Date) });
    expect(withdrawn.rollouts.map(({ state }) => state)).toEqual(["stopped", "stopped"]);
    expect(await getFirmware(db, { firmwareId: other.id })).toEqual(other);
  });

  it("is final: a withdrawn firmware is never released again", async () => {
    const { db } = database();
    const { id: firmwareId } = await aReleasedFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId });
    expect(await codeOf(releaseFirmware(db, { actor: SYSTEM, firmwareId }))).toBe("INVALID_STATE");
  });

  it("refuses a draft, which is offered to nobody", async () => {
    const { db } = database();
    const { id: firmwareId } = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    expect(await codeOf(withdrawFirmware(db, { actor: SYSTEM, firmwareId }))).toBe("INVALID_STATE");
  });

  it("leaves no running rollout behind when a release runs beside it", async () => {
    const { db } = database();
    const { id: firmwareId } = await aReleasedFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    await tally(
      inParallel(20, (index) =>
        index === 10
          ? withdrawFirmware(db, { actor: SYSTEM, firmwareId })
          : releaseFirmware(db, { actor: SYSTEM, firmwareId, startRollout: true, channel: `channel-${index}` }),
      ),
    );
    const { rollouts } = await getFirmware(db, { firmwareId });
    expect(rollouts.filter(({ state }) => state !== "stopped")).toEqual([]);
  });
});
