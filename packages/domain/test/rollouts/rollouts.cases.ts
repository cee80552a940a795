import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import {
  changeAllowList,
  createRollout,
  type Database,
  getProduct,
  getRollout,
  listAllowedDevices,
  listAudit,
  listRollouts,
  type Rollout,
  type RolloutStep,
  schema,
  takeRolloutStep,
  updateRollout,
  withdrawFirmware,
} from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { aDevice, aFirmware, aProduct, SYSTEM } from "../support/records.ts";
import { aReleasedDraft, counting } from "./support.ts";

const UNKNOWN = "00000000-0000-7000-8000-000000000000";

function step(db: Database, { id: rolloutId }: Rollout, name: RolloutStep) {
  return takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: name });
}

async function revisionOf(db: Database, rollout: Rollout) {
  const [row] = await db
    .select({ revision: schema.rollouts.revision, counted: schema.rolloutCounters.revision })
    .from(schema.rollouts)
    .leftJoin(schema.rolloutCounters, eq(schema.rolloutCounters.rolloutId, schema.rollouts.id))
    .where(eq(schema.rollouts.publicId, rollout.id));
  const { catalogRevision } = await getProduct(db, { product: rollout.firmware.product });
  return { ...row, catalogRevision };
}

export const rolloutCases = casesOn("rollouts", (database) => {
  it("one is made as a draft that addresses everybody, at any time", async () => {
    const { db } = database();
    const rollout = await aReleasedDraft(db);
    expect(rollout).toMatchObject({
      ...{ state: "draft", channel: "stable", percentageBasisPoints: 10_000, groups: [], attributeFilter: null },
      ...{ window: null, phases: [], maxConcurrent: null, maxTotal: null, counts: null, startedAt: null },
    });
    expect(await getRollout(db, { rolloutId: rollout.id })).toEqual(rollout);
  });

  it("all terms are read back as they were given", async () => {
    const { db } = database();
    const terms = {
      channel: "beta",
      groups: ["lab", "berlin"],
      attributeFilter: { all: [{ attribute: "region", in: ["eu", "uk"] }, { not: { attribute: "ram", eq: 256 } }] },
      hardwareRevisions: ["B", "A"],
      priority: -5,
      phases: [
        { percentageBasisPoints: 1_000, minSucceeded: 5, minSuccessBasisPoints: 9_000 },
        { percentageBasisPoints: 10_000, minSucceeded: 1, minSuccessBasisPoints: 0 },
      ],
      window: { days: [6, 7], fromMinute: 1320, toMinute: 240 },
      ...{ maxConcurrent: 10, maxTotal: 100, successThreshold: 7 },
      errorThreshold: { failureBasisPoints: 2_500, minOutcomes: 4 },
      ...{ maxAttempts: 5, backoffSeconds: 30, timeoutsSeconds: { offered: null, installing: 600 } },
      ...{ allowDowngrade: true, requiresConfirmation: true },
    } as const;
    const made = await aReleasedDraft(db, terms);
    expect(made).toMatchObject({ ...terms, percentageBasisPoints: 1_000, phaseIndex: 0, ...counting(0) });
  });

  it.each<[string, Parameters<typeof aReleasedDraft>[1]]>([
    ["channel", { channel: "A B" }],
    ["groups", { groups: ["a", "a"] }],
    [
      "attributeFilter.all[1].semver",
      {
        attributeFilter: {
          all: [
            { attribute: "a", eq: 1 },
            { attribute: "b", semver: ">=banana" },
          ],
        },
      },
    ],
    ["hardwareRevisions", { hardwareRevisions: ["\0"] }],
    ["priority", { priority: 1001 }],
    ["percentage", { percentageBasisPoints: 10_001 }],
    ["percentage", { percentageBasisPoints: 0.5 }],
    ["phases[1].percentage", { phases: [phase(5_000), phase(5_000)] }],
    ["phases[0].minSucceeded", { phases: [{ ...phase(5_000), minSucceeded: 0 }] }],
    ["percentage", { phases: [phase(5_000)], percentageBasisPoints: 1 }],
    ["successThreshold", { phases: [{ ...phase(5_000), minSucceeded: 7 }, phase(10_000)], successThreshold: 7 }],
    ["window.days", { window: { days: [], fromMinute: 0, toMinute: 0 } }],
    ["window.days", { window: { days: [1, 1], fromMinute: 0, toMinute: 0 } }],
    ["window.from", { window: { days: [1], fromMinute: 1440, toMinute: 0 } }],
    ["maxConcurrent", { maxConcurrent: 0 }],
    ["maxTotal", { maxTotal: 2 ** 31 }],
    ["errorThreshold.failurePercentage", { errorThreshold: { failureBasisPoints: 0, minOutcomes: 1 } }],
    ["maxAttempts", { maxAttempts: 0 }],
    ["timeoutsSeconds.offered", { timeoutsSeconds: { offered: 0 } }],
  ])("a bad %s is refused by its name", async (field, terms) => {
    const { db } = database();
    await expect(aReleasedDraft(db, terms)).rejects.toMatchObject({ code: "INVALID_FIELD", details: { field } });
  });

  it("a success threshold may be reached in the last phase, and in any phase beyond what leads to the next", async () => {
    const { db } = database();
    const phases = [
      { ...phase(5_000), minSucceeded: 7 },
      { ...phase(10_000), minSucceeded: 100 },
    ];
    expect(await aReleasedDraft(db, { phases, successThreshold: 8 })).toMatchObject({ successThreshold: 8 });
  });

  it("goes from draft over running and paused to its end, and each step is in the audit log", async () => {
    const { db } = database();
    const draft = await aReleasedDraft(db);
    expect(await step(db, draft, "start")).toMatchObject({ state: "running", startedAt: expect.any(Date) });
    expect(await step(db, draft, "pause")).toMatchObject({ state: "paused", pausedBy: "operator" });
    expect(await step(db, draft, "resume")).toMatchObject({ state: "running", pausedBy: null });
    expect(await step(db, draft, "finish")).toMatchObject({ state: "finished", endedAt: expect.any(Date) });
    const { items } = await listAudit(db, { subjectId: draft.id });
    expect(items.map(({ action, before, after }) => [action, before?.["state"], after?.["state"]]).reverse()).toEqual([
      ["rollout.create", undefined, undefined],
      ["rollout.start", "draft", "running"],
      ["rollout.pause", "running", "paused"],
      ["rollout.resume", "paused", "running"],
      ["rollout.finish", "running", "finished"],
    ]);
  });

  it.each<[string, readonly RolloutStep[], readonly RolloutStep[]]>([
    ["a draft", [], ["pause", "resume", "finish"]],
    ["a running one", ["start"], []],
    ["a paused one", ["start", "pause"], ["start"]],
    ["a finished one", ["start", "finish"], ["start", "pause", "resume", "stop"]],
    ["a stopped one", ["start", "stop"], ["start", "pause", "resume", "finish"]],
  ])("%s is refused what does not lead on from it", async (_words, steps, refused) => {
    const { db } = database();
    const rollout = await aReleasedDraft(db);
    for (const one of steps) await step(db, rollout, one);
    const before = await revisionOf(db, rollout);
    for (const one of refused) expect([one, await codeOf(step(db, rollout, one))]).toEqual([one, "INVALID_STATE"]);
    expect(await revisionOf(db, rollout)).toEqual(before);
  });

  it("a step that is taken again changes nothing, and many at once take it once", async () => {
    const { db } = database();
    const rollout = await aReleasedDraft(db);
    expect(await tally(inParallel(10, () => step(db, rollout, "start")))).toEqual({ "no error": 10 });
    const { items } = await listAudit(db, { subjectId: rollout.id });
    expect(items.map(({ action }) => action)).toEqual(["rollout.start", "rollout.create"]);
  });

  it("every change grows the revisions of rollout, counters and catalog alike", async () => {
    const { db } = database();
    const rollout = await aReleasedDraft(db, { maxTotal: 5, percentageBasisPoints: 100 });
    const first = await revisionOf(db, rollout);
    expect(first.counted).toBe(first.revision);
    await step(db, rollout, "start");
    await updateRollout(db, { actor: SYSTEM, rolloutId: rollout.id, percentageBasisPoints: 200 });
    await updateRollout(db, { actor: SYSTEM, rolloutId: rollout.id, percentageBasisPoints: 200 });
    const { revision = 0n, catalogRevision } = first;
    const grown = revision + 2n;
    expect(await revisionOf(db, rollout)).toEqual({
      ...{ revision: grown, counted: grown, catalogRevision: catalogRevision + 2n },
    });
  });

  it("while it runs its percentage only grows, caps and thresholds change, and whom it addresses stays", async () => {
    const { db } = database();
    const { id: rolloutId } = await aReleasedDraft(db, { percentageBasisPoints: 1_000, maxConcurrent: 5 });
    const update = (terms: object) => updateRollout(db, { actor: SYSTEM, rolloutId, ...terms });
    await takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: "start" });
    expect(await update({ percentageBasisPoints: 2_000 })).toMatchObject({ percentageBasisPoints: 2_000 });
    expect(await update({ maxConcurrent: 2, maxTotal: 9 })).toMatchObject({ maxConcurrent: 2, maxTotal: 9 });
    expect(await update({ errorThreshold: { failureBasisPoints: 1, minOutcomes: 1 } })).toMatchObject({ maxTotal: 9 });
    expect(await codeOf(update({ percentageBasisPoints: 1_999 }))).toBe("INVALID_STATE");
    for (const terms of [
      ...[{ groups: ["lab"] }, { channel: "beta" }, { attributeFilter: { attribute: "a", exists: true } }],
      ...[{ priority: 1 }, { window: { days: [1], fromMinute: 0, toMinute: 1 } }, { hardwareRevisions: ["A"] }],
    ]) {
      expect([terms, await codeOf(update(terms))]).toEqual([terms, "INVALID_STATE"]);
    }
    await takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: "pause" });
    expect(await update({ percentageBasisPoints: 500, groups: ["lab"] })).toMatchObject({
      ...{ percentageBasisPoints: 500, groups: ["lab"], maxConcurrent: 2 },
    });
    await takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: "stop" });
    expect(await codeOf(update({ priority: 1 }))).toBe("INVALID_STATE");
  });

  it("a change writes what was different before, and nothing else", async () => {
    const { db } = database();
    const { id: rolloutId } = await aReleasedDraft(db, { priority: 3 });
    await updateRollout(db, { actor: SYSTEM, rolloutId, priority: 4, channel: "stable" });
    const [entry] = (await listAudit(db, { subjectId: rolloutId, limit: 1 })).items;
    expect(entry).toMatchObject({ action: "rollout.update", before: { priority: 3 }, after: { priority: 4 } });
    expect(Object.keys(entry?.after ?? {})).toEqual(["priority"]);
  });

  it("the first cap of one that has run without counting is refused", async () => {
    const { db } = database();
    const rollout = await aReleasedDraft(db);
    await step(db, rollout, "start");
    await step(db, rollout, "pause");
    expect(await codeOf(updateRollout(db, { actor: SYSTEM, rolloutId: rollout.id, maxTotal: 5 }))).toBe(
      "INVALID_STATE",
    );
    const draft = await aReleasedDraft(db);
    expect(await updateRollout(db, { actor: SYSTEM, rolloutId: draft.id, maxTotal: 5 })).toMatchObject(counting(0));
  });

  it("is made for a draft of a firmware, and started only once that is released", async () => {
    const { db } = database();
    const firmware = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
    const rollout = await createRollout(db, { actor: SYSTEM, firmwareId: firmware.id });
    expect(await codeOf(step(db, rollout, "start"))).toBe("INVALID_STATE");
    expect(await getRollout(db, { rolloutId: rollout.id })).toMatchObject({ state: "draft", startedAt: null });
  });

  it("ends with the withdrawal of its firmware, from which on no place is left in it", async () => {
    const { db } = database();
    const rollout = await aReleasedDraft(db, { maxTotal: 5 });
    await step(db, rollout, "start");
    await withdrawFirmware(db, { actor: SYSTEM, firmwareId: rollout.firmware.id });
    expect(await getRollout(db, { rolloutId: rollout.id })).toMatchObject({
      state: "stopped",
      endedAt: expect.any(Date),
    });
    const { revision, counted } = await revisionOf(db, rollout);
    expect(counted).toBe(revision);
    expect(await codeOf(step(db, rollout, "resume"))).toBe("INVALID_STATE");
    expect(await codeOf(createRollout(db, { actor: SYSTEM, firmwareId: rollout.firmware.id }))).toBe("INVALID_STATE");
  });

  it("lists are by product, firmware and state, newest first", async () => {
    const { db } = database();
    const one = await aReleasedDraft(db);
    const { product, id: firmwareId } = one.firmware;
    const two = await createRollout(db, { actor: SYSTEM, firmwareId, channel: "beta" });
    await step(db, two, "start");
    const ids = async (filter: object) => (await listRollouts(db, { product, ...filter })).items.map(({ id }) => id);
    expect(await ids({})).toEqual([two.id, one.id]);
    expect(await ids({ firmwareId, state: "draft" })).toEqual([one.id]);
    expect(await ids({ state: "running" })).toEqual([two.id]);
    expect(await codeOf(listRollouts(db, { product: "no-such" }))).toBe("NOT_FOUND");
  });

  it("an allow-list takes devices of its product, each once, and says which it lacks", async () => {
    const { db } = database();
    const rollout = await aReleasedDraft(db, { percentageBasisPoints: 0 });
    const { product } = rollout.firmware;
    const [a, b] = [await aDevice(db, product), await aDevice(db, product)];
    const stranger = await aDevice(db, await aProduct(db));
    const change = (what: "allow" | "disallow", ...devices: { device: { id: string } }[]) =>
      changeAllowList(db, {
        ...{ actor: SYSTEM, rolloutId: rollout.id, change: what, deviceIds: devices.map(({ device }) => device.id) },
      });
    const list = async () => (await listAllowedDevices(db, { rolloutId: rollout.id })).items.map(({ id }) => id);
    expect(await change("allow", a, a)).toEqual({ changed: 1 });
    expect(await change("allow", a, b)).toEqual({ changed: 1 });
    expect(await codeOf(change("allow", a, stranger))).toBe("NOT_FOUND");
    expect(await codeOf(change("allow"))).toBe("INVALID_FIELD");
    expect(await list()).toEqual([b.device.id, a.device.id]);
    expect(await change("disallow", a)).toEqual({ changed: 1 });
    expect(await change("disallow", a)).toEqual({ changed: 0 });
    expect(await list()).toEqual([b.device.id]);
    const { items } = await listAudit(db, { subjectId: rollout.id });
    expect(items.slice(0, 3).map(({ action, after }) => [action, after])).toEqual([
      ["rollout.disallow_devices", { deviceIds: [] }],
      ["rollout.allow_devices", { deviceIds: [b.device.id] }],
      ["rollout.allow_devices", { deviceIds: [a.device.id] }],
    ]);
  });

  it("answers NOT_FOUND for what is no rollout", async () => {
    const { db } = database();
    for (const rolloutId of [UNKNOWN, "x"]) {
      expect(await codeOf(getRollout(db, { rolloutId }))).toBe("NOT_FOUND");
      expect(await codeOf(updateRollout(db, { actor: SYSTEM, rolloutId }))).toBe("NOT_FOUND");
      expect(await codeOf(takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: "start" }))).toBe("NOT_FOUND");
    }
  });
});

function phase(percentageBasisPoints: number) {
  return { percentageBasisPoints, minSucceeded: 1, minSuccessBasisPoints: 0 };
}
