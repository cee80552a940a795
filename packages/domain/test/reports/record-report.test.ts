import { getDevice, getUpgrade, hashToken, type Report, type UpdateAnswer } from "@ota/domain";
import { LockFactory, LockStoreError, MemoryStore } from "@ota/lock-core";
import { expect, it } from "vitest";
import { describeOnDatabases } from "../support/databases.ts";
import { createFleet, quietLogger, startChecks } from "../support/fleet.ts";

describeOnDatabases("recordReport", (database) => {
  async function setUp(confirmBy: "report" | "version" = "report") {
    const { db } = database();
    const fleet = await createFleet(db, { confirmBy });
    await fleet.release("2.0.0");
    const device = await fleet.device();
    const { tokenHash } = device;
    const checks = startChecks(db);
    const offer = (await checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } })) as UpdateAnswer;
    const attemptId = offer.attempt.id;
    const report = (state: Report["state"], more: Omit<Report, "state"> = {}) => {
      return checks.recordReport({ tokenHash, attemptId, report: { state, ...more } });
    };
    const attempt = async () => {
      const [newest] = (await getUpgrade(db, { upgradeId: offer.upgradeId })).attempts.slice(-1);
      if (newest === undefined) throw new Error("The record has no attempt.");
      return newest;
    };
    const events = async () => (await attempt()).events;
    const facts = () => getDevice(db, { deviceId: device.id });
    const setAttempt = (assignments: string) =>
      database().query(`update upgrade_attempts set ${assignments} where id = ${attemptId}`);
    return { db, fleet, checks, device, tokenHash, attemptId, report, attempt, events, facts, setAttempt };
  }

  it("moves the attempt forward, and keeps every report in the order of receipt", async () => {
    const { report, events, attempt } = await setUp();
    for (const state of ["downloading", "downloaded", "installing", "installed", "succeeded"] as const) {
      expect(await report(state)).toMatchObject({ attempt: { state }, effect: "moved" });
    }
    expect((await events()).map(({ seq, toState }) => `${seq} ${toState}`)).toEqual([
      ...["1 offered", "2 downloading", "3 downloaded", "4 installing", "5 installed", "6 succeeded"],
    ]);
    expect(await attempt()).toMatchObject({ state: "succeeded", closedAt: expect.any(Date) });
  });

  it("keeps a report that lags behind as history, whatever the device's clock says", async () => {
    const { report, events, attempt } = await setUp();
    await report("installing", { deviceTime: new Date(0) });
    const late = await report("downloading", { deviceTime: new Date("2099-01-01"), progressPercent: 40 });
    expect(late).toMatchObject({ attempt: { state: "installing" }, effect: "history" });
    expect(await attempt()).toMatchObject({ state: "installing" });
    expect((await events()).at(-1)).toMatchObject({
      ...{ seq: 3, reportedState: "downloading", fromState: "installing", toState: "installing" },
      ...{ progressPercent: 40, deviceTime: new Date("2099-01-01") },
    });
  });

  it("stores all of many reports that are sent without waiting for answers", async () => {
    const { report, events } = await setUp();
    await Promise.all(Array.from({ length: 40 }, (_, percent) => report("downloading", { progressPercent: percent })));
    expect((await events()).map(({ seq }) => seq)).toEqual(Array.from({ length: 41 }, (_, index) => index + 1));
  });

  it("keeps why an attempt failed", async () => {
    const { report, attempt, events } = await setUp();
    await report("failed", { code: 42, message: "no space left", details: ["line 1", 'line "2", {}\\'] });
    expect(await attempt()).toMatchObject({ state: "failed", failureCode: 42, failureMessage: "no space left" });
    expect((await events()).at(-1)).toMatchObject({ code: 42, details: ["line 1", 'line "2", {}\\'] });
  });

  it("cuts what is too long and mends what a database cannot hold, and never refuses the report", async () => {
    const { report, events } = await setUp();
    const result = await report("failed", {
      message: `\u0000${"m".repeat(5_000)}`,
      details: Array.from({ length: 200 }, (_, line) => `${line} \u0000 \ud800 ${"d".repeat(5_000)}`),
      code: 1e20,
      progressPercent: 1e9,
      deviceTime: new Date(8.64e15),
      version: `\u0000${"9".repeat(5_000)}`,
    });
    expect(result).toMatchObject({ effect: "moved", attempt: { state: "failed" }, ignored: ["code", "deviceTime"] });
    const event = (await events()).at(-1);
    expect(event).toMatchObject({ code: null, progressPercent: 100, deviceTime: null });
    expect(event?.message).toHaveLength(1_000);
    expect(event?.details).toHaveLength(50);
    expect(event?.details[48]).toMatch(/^199 \ufffd \ufffd d+$/);
    expect(event?.details[49]).toMatch(/ignored, as it could not be kept: code, deviceTime$/);
  });

  it("keeps at most a thousand reports without effect, and a final one always", async () => {
    const { report, events, attempt, setAttempt } = await setUp();
    await report("downloading");
    await setAttempt("last_seq = 1000");
    expect(await report("downloading")).toMatchObject({ effect: "history" });
    expect(await events()).toHaveLength(2);
    expect(await report("installing")).toMatchObject({ effect: "moved" });
    expect(await report("failed", { message: "the end" })).toMatchObject({ effect: "moved" });
    expect(await attempt()).toMatchObject({ state: "failed", failureMessage: "the end" });
    expect((await events()).map(({ seq }) => seq)).toEqual([1, 2, 1001, 1002]);
  });

  it("answers a repeated final report like the first, and writes nothing", async () => {
    const { report, events } = await setUp();
    await report("failed");
    expect(await report("failed")).toMatchObject({ effect: "repeated", attempt: { state: "failed" } });
    expect(await events()).toHaveLength(2);
  });

  it("refuses progress on a closed attempt, and says how it ended", async () => {
    const { report, events } = await setUp();
    await report("failed");
    for (const state of ["confirmed", "downloading", "installed", "cancel_rejected"] as const) {
      await expect(report(state)).rejects.toMatchObject({ code: "ATTEMPT_CLOSED", details: { state: "failed" } });
    }
    expect(await events()).toHaveLength(2);
  });

  it("keeps an end that is reported on an attempt which is over, and leaves the attempt as it ended", async () => {
    const { report, events, attempt, setAttempt } = await setUp();
    await setAttempt("state = 'timed_out', closed_at = now(), failure_message = 'silent while offered'");
    const { closedAt } = await attempt();
    const late = await report("failed", { code: 7, message: "flash worn out" });
    expect(late).toMatchObject({ effect: "history", attempt: { state: "timed_out" } });
    expect(await report("cancelled")).toMatchObject({ effect: "history" });
    expect(await attempt()).toMatchObject({ failureCode: null, failureMessage: "silent while offered", closedAt });
    expect((await events()).slice(1)).toMatchObject([
      { seq: 2, reportedState: "failed", fromState: "timed_out", toState: "timed_out", code: 7 },
      { seq: 3, reportedState: "cancelled" },
    ]);
  });

  it("a late success revises a timeout, and nothing of the timeout stays", async () => {
    const { report, attempt, facts, setAttempt } = await setUp();
    await setAttempt("state = 'timed_out', closed_at = now(), failure_message = 'silent while offered'");
    await expect(report("installing")).rejects.toMatchObject({ code: "ATTEMPT_CLOSED" });
    expect(await report("succeeded")).toMatchObject({ effect: "moved", attempt: { state: "succeeded" } });
    expect(await attempt()).toMatchObject({ state: "succeeded", failureMessage: null });
    expect(await facts()).toMatchObject({ confirmedVersion: "2.0.0" });
  });

  it("believes a success on an attempt that the service has ended, and does not offer the same again", async () => {
    const { report, attempt, facts, setAttempt, checks, tokenHash } = await setUp();
    await setAttempt("state = 'cancelled', closed_at = now() - interval '1 day'");
    expect(await report("succeeded")).toMatchObject({ effect: "history", attempt: { state: "cancelled" } });
    expect(await attempt()).toMatchObject({ state: "cancelled" });
    expect(await facts()).toMatchObject({ confirmedVersion: "2.0.0", reportedVersion: null });
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ decision: "none", reason: "UP_TO_DATE" });
  });

  it("a success that comes after one with something newer tells nothing about what the device runs", async () => {
    const { fleet, report, attempt, facts, setAttempt, checks, tokenHash } = await setUp();
    await setAttempt("state = 'timed_out', closed_at = now()");
    await fleet.release("3.0.0");
    const next = (await checks.checkForUpdate({ tokenHash })) as UpdateAnswer;
    const succeeded = { tokenHash, attemptId: next.attempt.id, report: { state: "succeeded" } } as const;
    expect(await checks.recordReport(succeeded)).toMatchObject({ attempt: { state: "succeeded" } });
    expect(await report("succeeded")).toMatchObject({ effect: "moved", attempt: { state: "succeeded" } });
    expect(await attempt()).toMatchObject({ state: "succeeded" });
    expect(await facts()).toMatchObject({ confirmedVersion: "3.0.0" });
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ reason: "UP_TO_DATE" });
  });

  it("any word of the device begins its deadline anew, also one that is not kept", async () => {
    const { report, attempt, setAttempt } = await setUp();
    const expectAnew = async () => {
      const { deadlineAt } = await attempt();
      expect((deadlineAt?.getTime() ?? 0) - Date.now()).toBeGreaterThan(86_000_000);
    };
    const nearlyOver = "deadline_at = now() + interval '1 second'";
    await expectAnew();
    for (const [state, more] of [["downloading"], ["downloading"], ["confirmed"], ["downloading", "last_seq = 1000"]]) {
      await setAttempt([nearlyOver, ...(more === undefined ? [] : [more])].join(", "));
      await report(state as Report["state"]);
      await expectAnew();
    }
    await report("failed");
    expect(await attempt()).toMatchObject({ deadlineAt: null });
  });

  it("waits for the new version where that makes success", async () => {
    const { report, checks, tokenHash, attempt, facts } = await setUp("version");
    expect(await report("succeeded")).toMatchObject({ effect: "moved", attempt: { state: "installed" } });
    expect(await facts()).toMatchObject({ reportedVersion: "1.0.0", confirmedVersion: null });
    await checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
    expect(await attempt()).toMatchObject({ state: "installed" });
    await checks.checkForUpdate({ tokenHash, reported: { version: "2.0.0" } });
    expect(await attempt()).toMatchObject({ state: "succeeded" });
  });

  it("a report that tells the new version is success at once", async () => {
    const { report, facts } = await setUp("version");
    const result = await report("installed", { version: "2.0.0" });
    expect(result).toMatchObject({ effect: "moved", attempt: { state: "succeeded" } });
    expect(await facts()).toMatchObject({ reportedVersion: "2.0.0", confirmedVersion: "2.0.0" });
  });

  it("a report that tells another version is kept for the next check", async () => {
    const { report, facts } = await setUp();
    await report("failed", { version: "1.0.1" });
    expect(await facts()).toMatchObject({ reportedVersion: "1.0.1", confirmedVersion: null });
  });

  it("hides other devices' attempts, and takes any number for an id", async () => {
    const { checks, fleet, attemptId } = await setUp();
    const other = await fleet.device();
    for (const id of [attemptId, 0, -1, 1.5, 2 ** 31, Number.NaN, Number.POSITIVE_INFINITY]) {
      const foreign = checks.recordReport({ tokenHash: other.tokenHash, attemptId: id, report: { state: "failed" } });
      await expect(foreign).rejects.toMatchObject({ code: "NOT_FOUND" });
    }
    const unknown = checks.recordReport({ tokenHash: hashToken("x"), attemptId, report: { state: "failed" } });
    await expect(unknown).rejects.toMatchObject({ code: "DEVICE_TOKEN_INVALID" });
  });

  it("needs no lock: a final report is taken while the lock store is at fault", async () => {
    const { db, tokenHash, attemptId } = await setUp();
    const store = new MemoryStore();
    store.acquire = async ({ key }) => {
      throw new LockStoreError({ key, store: "memory", operation: "acquire", reason: "it is down" });
    };
    const checks = startChecks(db, {
      locks: new LockFactory(store, { logger: quietLogger }),
      settings: { lockOutage: "busy" },
    });
    const result = await checks.recordReport({ tokenHash, attemptId, report: { state: "failed" } });
    expect(result.effect).toBe("moved");
  });

  it("checks and reports of one device at the same time neither fail nor lose a report", async () => {
    const { checks, tokenHash, report, events } = await setUp();
    const versions = ["1.0.0", "1.0.1"];
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => [
        report("downloading", { progressPercent: index, version: versions[index % 2] as string }),
        checks.checkForUpdate({ tokenHash, reported: { version: versions[(index + 1) % 2] as string } }),
      ]).flat(),
    );
    expect(await events()).toHaveLength(31);
  });
});
