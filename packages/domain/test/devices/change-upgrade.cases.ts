import { expect, it, vi } from "vitest";
import { type Actor, type AttemptState, cancelUpgrade, listAudit, resetUpgrade } from "../../src/index.ts";
import { anAttempt } from "../support/attempts.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel } from "../support/errors.ts";
import { aDevice, aProduct, aReleasedFirmware } from "../support/records.ts";

const actor: Actor = { kind: "operator", keyId: "01900000-0000-7000-8000-000000000000", name: "Zoë" };
const UNKNOWN = ["", "\0", "00000000-0000-7000-8000-000000000000"];

export const changeUpgradeCases = casesOn("an operator's changes of upgrades", (database) => {
  async function upgradeIn(state: AttemptState) {
    const { db, query } = database();
    const product = await aProduct(db);
    const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
    const { device } = await aDevice(db, product);
    const pair = { deviceId: device.id, firmwareId: firmware.id };
    const made = await anAttempt(db, { ...pair, state });
    const { upgradeId } = made;
    const audited = async () =>
      (await listAudit(db, { subjectId: upgradeId })).items.map(({ action, before, after }) => ({
        action,
        before,
        after,
      }));
    return { db, query, pair, ...made, audited };
  }

  it.each([
    ["awaiting_confirmation", "cancelled"],
    ["offered", "cancelled"],
    ["downloading", "cancelling"],
    ["downloaded", "cancelling"],
    ["installing", "cancelling"],
    ["installed", "cancelling"],
  ] as const)("cancelling an upgrade that is %s makes it %s, once", async (before, after) => {
    const { db, query, upgradeId, attemptId, audited } = await upgradeIn(before);
    const cancelled = await Promise.all(inParallel(5, () => cancelUpgrade(db, { actor, upgradeId })));
    for (const one of cancelled) {
      expect(one).toMatchObject({ attempt: { id: attemptId, state: after }, cancelled: true });
    }
    expect(cancelled[0]?.attempts[0]?.events).toMatchObject([
      { seq: 1, reportedState: null, fromState: before, toState: after },
    ]);
    expect(await audited()).toEqual([
      {
        action: "upgrade.cancel",
        before: { attempt: 1, state: before, cancelled: false },
        after: { attempt: 1, state: after, cancelled: true },
      },
    ]);
    const [row] = await query(
      `select cancel_outcome, deadline_at > now() as timed from upgrade_attempts where id = ${attemptId}`,
    );
    const asked = after === "cancelling";
    expect(row).toEqual({ cancel_outcome: "cancelled", timed: asked ? true : null });
  });

  it.each(["cancelling", "failed", "timed_out", "superseded", "cancelled"] as const)(
    "one that is %s by itself stays so, and is cancelled by an operator from then on, once",
    async (state) => {
      const { db, query, upgradeId, attemptId, audited } = await upgradeIn(state);
      if (state === "cancelling") {
        await query(`update upgrade_attempts set cancel_outcome = 'superseded' where id = ${attemptId}`);
      }
      const [before] = await query(`select closed_at from upgrade_attempts where id = ${attemptId}`);
      const observe = vi.fn();
      for (const _ of [1, 2]) {
        const cancelled = await cancelUpgrade(db, { actor, upgradeId, observe });
        expect(cancelled).toMatchObject({ attempt: { state }, cancelled: true });
      }
      // It has moved nowhere.
      expect(observe).not.toHaveBeenCalled();
      expect(await query(`select closed_at from upgrade_attempts where id = ${attemptId}`)).toEqual([before]);
      expect(await audited()).toEqual([
        {
          action: "upgrade.cancel",
          before: { attempt: 1, state, cancelled: false },
          after: { attempt: 1, state, cancelled: true },
        },
      ]);
    },
  );

  it("one that has succeeded is refused", async () => {
    const { db, upgradeId, audited } = await upgradeIn("succeeded");
    await expect(cancelUpgrade(db, { actor, upgradeId })).rejects.toMatchObject({
      code: "INVALID_STATE",
      details: { state: "succeeded" },
    });
    expect(await audited()).toEqual([]);
  });

  it("a reset takes a cancellation back, and what was reset can be cancelled again", async () => {
    const { db, upgradeId, audited } = await upgradeIn("failed");
    await resetUpgrade(db, { actor, upgradeId });
    for (const _ of [1, 2]) {
      expect((await cancelUpgrade(db, { actor, upgradeId })).cancelled).toBe(true);
      const reset = await Promise.all(inParallel(3, () => resetUpgrade(db, { actor, upgradeId })));
      for (const { cancelled } of reset) expect(cancelled).toBe(false);
    }
    expect((await audited()).slice(0, 2)).toEqual([
      {
        action: "upgrade.reset",
        before: { attemptsForgiven: 1, cancelled: true },
        after: { attemptsForgiven: 1, cancelled: false },
      },
      {
        action: "upgrade.cancel",
        before: { attempt: 1, state: "failed", cancelled: false },
        after: { attempt: 1, state: "failed", cancelled: true },
      },
    ]);
    expect(await audited()).toHaveLength(5);
  });

  it("a reset forgives the attempts so far, once, and those that come later count", async () => {
    const { db, pair, upgradeId, audited } = await upgradeIn("failed");
    await anAttempt(db, { ...pair, state: "timed_out" });
    const reset = await Promise.all(inParallel(5, () => resetUpgrade(db, { actor, upgradeId })));
    for (const { attemptsForgiven } of reset) expect(attemptsForgiven).toBe(2);
    expect(await audited()).toEqual([
      {
        action: "upgrade.reset",
        before: { attemptsForgiven: 0, cancelled: false },
        after: { attemptsForgiven: 2, cancelled: false },
      },
    ]);
    await anAttempt(db, { ...pair, state: "failed" });
    expect((await resetUpgrade(db, { actor, upgradeId })).attemptsForgiven).toBe(3);
    expect(await audited()).toHaveLength(2);
  });

  it.each(UNKNOWN)("what is no upgrade is NOT_FOUND: %j", async (upgradeId) => {
    const { db } = database();
    expect(await codeOf(cancelUpgrade(db, { actor, upgradeId }))).toBe("NOT_FOUND");
    expect(await codeOf(resetUpgrade(db, { actor, upgradeId }))).toBe("NOT_FOUND");
  });
});
