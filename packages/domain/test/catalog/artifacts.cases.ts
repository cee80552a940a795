import { expect, it } from "vitest";
import { recordTransition } from "../../src/attempts/record-transition.ts";
import {
  ATTEMPT_STATES,
  type AttemptState,
  findArtifact,
  findArtifactForDevice,
  hashToken,
  isPastDownload,
  updateDevice,
  withdrawFirmware,
} from "../../src/index.ts";
import { anAttempt, setAttemptState } from "../support/attempts.ts";
import { casesOn, type TestDatabase } from "../support/databases.ts";
import { codeOf } from "../support/errors.ts";
import { aDevice, aFirmware, aProduct, aReleasedFirmware, artifactFacts, SYSTEM } from "../support/records.ts";

async function anOffer({ db }: TestDatabase, state: AttemptState) {
  const product = await aProduct(db);
  const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
  const { device, token } = await aDevice(db, product);
  const { attemptId } = await anAttempt(db, { deviceId: device.id, firmwareId: firmware.id, state });
  return { db, product, device, attemptId, firmwareId: firmware.id, tokenHash: hashToken(token) };
}

export const deviceArtifactCases = casesOn("findArtifactForDevice", (database) => {
  it("gives a device the facts of what it is offered", async () => {
    const { db, ...offer } = await anOffer(database(), "offered");
    expect(await findArtifactForDevice(db, offer)).toEqual({
      ...{ firmwareId: offer.firmwareId, uploadedAt: expect.any(Date), sourceUrl: null },
      ...artifactFacts("1.0.0"),
    });
  });

  it("gives it in every state of the newest attempt but those in which the offer was taken back", async () => {
    const { db, attemptId, ...offer } = await anOffer(database(), "offered");
    const refused: AttemptState[] = [];
    for (const state of ATTEMPT_STATES) {
      await setAttemptState(db, { attemptId, state });
      const wanted = { ...offer, beforeConsent: true };
      if ((await codeOf(findArtifactForDevice(db, wanted))) === "NOT_FOUND") refused.push(state);
    }
    expect(refused).toEqual(["cancelled", "superseded"]);
  });

  it("gives it to no device whose consent is asked for and wanting, nor where the attempt has ended so", async () => {
    const { db, product, attemptId: _, ...offer } = await anOffer(database(), "succeeded");
    const asked = await aReleasedFirmware(db, { product, version: "2.0.0" });
    const wanted = { tokenHash: offer.tokenHash, firmwareId: asked.id };
    const answers: [AttemptState, boolean, string][] = [];
    for (const state of ["failed", "timed_out"] as const) {
      for (const consents of [false, true]) {
        const attempt = { deviceId: offer.device.id, firmwareId: asked.id, state: "awaiting_confirmation" } as const;
        const { attemptId } = await anAttempt(db, attempt);
        expect(await codeOf(findArtifactForDevice(db, wanted))).toBe("CONFIRMATION_REQUIRED");
        expect(await codeOf(findArtifactForDevice(db, { ...wanted, beforeConsent: true }))).toBe("no error");
        const from = consents ? "offered" : "awaiting_confirmation";
        const move = { attemptId, cancelOutcome: null } as const;
        if (consents) {
          await recordTransition(db, { ...move, from: "awaiting_confirmation", to: from });
          expect(await codeOf(findArtifactForDevice(db, wanted))).toBe("no error");
        }
        await recordTransition(db, { ...move, from, to: state });
        answers.push([state, consents, await codeOf(findArtifactForDevice(db, wanted))]);
      }
    }
    expect(answers).toEqual([
      ["failed", false, "CONFIRMATION_REQUIRED"],
      ["failed", true, "no error"],
      ["timed_out", false, "CONFIRMATION_REQUIRED"],
      ["timed_out", true, "no error"],
    ]);
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId: asked.id });
    expect(await codeOf(findArtifactForDevice(db, wanted))).toBe("ARTIFACT_WITHDRAWN");
  });

  it("gives a withdrawn firmware only to devices that have it and are installing it, and tells all others", async () => {
    const { db, attemptId, ...offer } = await anOffer(database(), "offered");
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId: offer.firmwareId });
    const answers: [AttemptState, string][] = [];
    for (const state of ATTEMPT_STATES) {
      await setAttemptState(db, { attemptId, state });
      answers.push([state, await codeOf(findArtifactForDevice(db, offer))]);
    }
    const given = answers.filter(([, code]) => code === "no error").map(([state]) => state);
    expect(given).toEqual(["downloaded", "installing", "installed"]);
    expect(given.every(isPastDownload)).toBe(true);
    const refusals = answers.filter(([, code]) => code !== "no error").map(([, code]) => code);
    expect(new Set(refusals)).toEqual(new Set(["ARTIFACT_WITHDRAWN"]));
  });

  it("tells of the withdrawal also whoever was offered something else since, and nobody who was never offered it", async () => {
    const { db, product, device, ...offer } = await anOffer(database(), "superseded");
    const next = await aReleasedFirmware(db, { product, version: "1.1.0" });
    await anAttempt(db, { deviceId: device.id, firmwareId: next.id, state: "offered" });
    const { token } = await aDevice(db, product);
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId: offer.firmwareId });
    expect(await codeOf(findArtifactForDevice(db, offer))).toBe("ARTIFACT_WITHDRAWN");
    expect(await codeOf(findArtifactForDevice(db, { ...offer, tokenHash: hashToken(token) }))).toBe("NOT_FOUND");
  });

  it("no longer gives what the newest attempt has moved on from", async () => {
    const { db, product, device, ...offer } = await anOffer(database(), "timed_out");
    const next = await aReleasedFirmware(db, { product, version: "1.1.0" });
    await anAttempt(db, { deviceId: device.id, firmwareId: next.id, state: "offered" });
    expect(await codeOf(findArtifactForDevice(db, offer))).toBe("NOT_FOUND");
    expect(await codeOf(findArtifactForDevice(db, { ...offer, firmwareId: next.id }))).toBe("no error");
  });

  it("answers NOT_FOUND alike for another device's firmware, a draft, an unknown id and what is no id", async () => {
    const { db, product, ...offer } = await anOffer(database(), "offered");
    const { token } = await aDevice(db, product);
    const other = { ...offer, tokenHash: hashToken(token) };
    expect(await codeOf(findArtifactForDevice(db, other))).toBe("NOT_FOUND");
    const draft = await aFirmware(db, { product, version: "2.0.0" });
    for (const firmwareId of [draft.id, "00000000-0000-7000-8000-000000000000", "", "\0", "' or 1=1"]) {
      expect(await codeOf(findArtifactForDevice(db, { ...offer, firmwareId }))).toBe("NOT_FOUND");
    }
  });

  it("gives a blocked device nothing", async () => {
    const { db, device, ...offer } = await anOffer(database(), "downloading");
    await updateDevice(db, { actor: SYSTEM, deviceId: device.id, blocked: true });
    expect(await codeOf(findArtifactForDevice(db, offer))).toBe("NOT_FOUND");
  });

  it("refuses an unknown token", async () => {
    const { db, ...offer } = await anOffer(database(), "offered");
    const unknown = { ...offer, tokenHash: hashToken("unknown") };
    expect(await codeOf(findArtifactForDevice(db, unknown))).toBe("DEVICE_TOKEN_INVALID");
  });
});

export const artifactCases = casesOn("findArtifact", (database) => {
  it("gives the facts while the firmware is released, and neither before nor after", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const { id: draftId } = await aFirmware(db, { product, version: "1.0.0" });
    expect(await codeOf(findArtifact(db, { firmwareId: draftId }))).toBe("NOT_FOUND");
    const { id: firmwareId, artifact } = await aReleasedFirmware(db, { product, version: "1.1.0" });
    expect(await findArtifact(db, { firmwareId })).toMatchObject({ firmwareId, ...artifact });
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId });
    expect(await codeOf(findArtifact(db, { firmwareId }))).toBe("ARTIFACT_WITHDRAWN");
    expect(await findArtifact(db, { firmwareId, finishing: true })).toMatchObject({ firmwareId });
    expect(await codeOf(findArtifact(db, { firmwareId: draftId, finishing: true }))).toBe("NOT_FOUND");
    expect(await codeOf(findArtifact(db, { firmwareId: "\0" }))).toBe("NOT_FOUND");
  });
});
