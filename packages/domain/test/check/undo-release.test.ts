import {
  cancelUpgrade,
  type LiveAttemptState,
  type ReportedState,
  takeRolloutStep,
  timeOutAttempts,
  type UpdateAnswer,
  withdrawFirmware,
} from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { describe, expect, it } from "vitest";
import { freshDatabase, openPostgres } from "../support/databases.ts";
import { codeOf } from "../support/errors.ts";
import { createFleet, startChecks } from "../support/fleet.ts";
import { runJob } from "../support/run-job.ts";

const actor = { kind: "system" } as const;

type Undoing = "withdraw" | "stop" | "supersede" | "withdraw, supersede";

/**
 * What a device that runs 1.0.0 and is somewhere on its way to the wrong 2.0.0 hears at its next check after an operator
 * has undone the release: `update` with the version, or `none` with the reason and whether it is to stop; then the state
 * of its attempt on 2.0.0.
 */
const NEXT_CHECK: readonly (readonly [LiveAttemptState, Undoing, string, string])[] = [
  ["awaiting_confirmation", "withdraw", "none NO_FIRMWARE", "cancelled"],
  ["awaiting_confirmation", "stop", "none NO_FIRMWARE", "cancelled"],
  ["awaiting_confirmation", "supersede", "update 3.0.0", "superseded"],
  ["awaiting_confirmation", "withdraw, supersede", "update 3.0.0", "cancelled"],
  ["offered", "withdraw", "none NO_FIRMWARE", "cancelled"],
  ["offered", "stop", "none NO_FIRMWARE", "cancelled"],
  ["offered", "supersede", "update 3.0.0", "superseded"],
  ["offered", "withdraw, supersede", "update 3.0.0", "cancelled"],
  // Once it fetches, a better offer waits until it is through; but what nobody should run is stopped.
  ["downloading", "withdraw", "none NO_FIRMWARE, stop", "cancelling"],
  ["downloading", "stop", "none NO_FIRMWARE, stop", "cancelling"],
  ["downloading", "supersede", "update 2.0.0", "downloading"],
  ["downloading", "withdraw, supersede", "none NO_FIRMWARE, stop", "cancelling"],
  ["downloaded", "withdraw", "none NO_FIRMWARE, stop", "cancelling"],
  ["downloaded", "stop", "none NO_FIRMWARE, stop", "cancelling"],
  ["downloaded", "supersede", "update 2.0.0", "downloaded"],
  ["downloaded", "withdraw, supersede", "none NO_FIRMWARE, stop", "cancelling"],
  // A device that writes its flash is left to finish.
  ["installing", "withdraw", "update 2.0.0", "installing"],
  ["installing", "stop", "update 2.0.0", "installing"],
  ["installing", "supersede", "update 2.0.0", "installing"],
  ["installing", "withdraw, supersede", "update 2.0.0", "installing"],
  ["installed", "withdraw", "update 2.0.0", "installed"],
  ["installed", "stop", "update 2.0.0", "installed"],
  ["installed", "supersede", "update 2.0.0", "installed"],
  ["installed", "withdraw, supersede", "update 2.0.0", "installed"],
  ["cancelling", "withdraw", "none NO_FIRMWARE, stop", "cancelling"],
  ["cancelling", "stop", "none NO_FIRMWARE, stop", "cancelling"],
  ["cancelling", "supersede", "none UPGRADE_CANCELLED, stop", "cancelling"],
  ["cancelling", "withdraw, supersede", "none NO_FIRMWARE, stop", "cancelling"],
];

/** What each report then does to an attempt in a state: where it moves, `kept` as history, `known`, or `refused`. */
const REPORTS: Readonly<Record<string, Readonly<Partial<Record<ReportedState, string>>>>> = {
  cancelled: { downloading: "refused", failed: "kept", cancelled: "known", succeeded: "kept" },
  superseded: { downloading: "refused", failed: "kept", cancelled: "known", succeeded: "kept" },
  cancelling: {
    ...{ downloading: "kept", failed: "failed", cancelled: "cancelled", succeeded: "succeeded" },
    cancel_rejected: "installing",
  },
  downloading: { failed: "failed", cancelled: "cancelled", succeeded: "succeeded" },
  downloaded: { downloading: "kept", failed: "failed", cancelled: "cancelled", succeeded: "succeeded" },
  installing: { downloading: "kept", failed: "failed", cancelled: "cancelled", succeeded: "succeeded" },
  installed: { downloading: "kept", failed: "failed", cancelled: "cancelled", succeeded: "succeeded" },
};

const WAY: Readonly<Record<LiveAttemptState, readonly ReportedState[]>> = {
  awaiting_confirmation: [],
  offered: [],
  downloading: ["downloading"],
  downloaded: ["downloading", "downloaded"],
  installing: ["downloading", "downloaded", "installing"],
  installed: ["downloading", "downloaded", "installing", "installed"],
  cancelling: ["downloading"],
};

describe.skipIf(!hasPostgres)("a wrong release that is undone while devices are in the middle of it", () => {
  const database = freshDatabase(openPostgres);

  async function deviceIn(state: LiveAttemptState) {
    const { db, query } = database();
    const fleet = await createFleet(db, { confirmBy: "report" });
    const firmware = await fleet.release("2.0.0");
    const rolloutId = firmware.rollouts[0]?.id as string;
    if (state === "awaiting_confirmation") {
      await query(`update rollouts set requires_confirmation = true where public_id = '${rolloutId}'`);
    }
    const { tokenHash } = await fleet.device();
    const checks = startChecks(db);
    const check = () => checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } });
    const { attempt, upgradeId } = (await check()) as UpdateAnswer;
    const report = (reported: ReportedState) =>
      checks.recordReport({ tokenHash, attemptId: attempt.id, report: { state: reported } });
    for (const reported of WAY[state]) await report(reported);
    if (state === "cancelling") await cancelUpgrade(db, { actor, upgradeId });
    const stateNow = async () => {
      const [row] = await query(`select state from upgrade_attempts where id = ${attempt.id}`);
      return row?.["state"];
    };
    expect(await stateNow()).toBe(state);
    const undo = async (undoing: Undoing) => {
      if (undoing.startsWith("withdraw")) await withdrawFirmware(db, { actor, firmwareId: firmware.id });
      if (undoing === "stop") await takeRolloutStep(db, { actor, rolloutId, step: "stop" });
      if (undoing.endsWith("supersede")) await fleet.release("3.0.0");
    };
    const ask = async () => {
      const answer = await check();
      if (answer.decision === "update") return `update ${answer.firmware.version}`;
      return `none ${answer.reason}${answer.stopping === undefined ? "" : ", stop"}`;
    };
    const effectOf = async (reported: ReportedState) => {
      const recorded = report(reported);
      if ((await codeOf(recorded)) === "ATTEMPT_CLOSED") return "refused";
      const { effect, attempt } = await recorded;
      return effect === "moved" ? attempt.state : effect === "history" ? "kept" : "known";
    };
    return { undo, ask, stateNow, report, effectOf };
  }

  it.each(NEXT_CHECK)("%s, and %s: the next check says %s, the attempt is %s", async (state, undoing, says, then) => {
    const { undo, ask, stateNow } = await deviceIn(state);
    await undo(undoing);
    expect(await ask()).toBe(says);
    expect(await stateNow()).toBe(then);
    // Asking again is told the same.
    expect(await ask()).toBe(says);
    expect(await stateNow()).toBe(then);
  });

  // What a report does is a matter of the attempt's state alone: one way to each will do.
  const oneWay = NEXT_CHECK.filter(([, undoing, , then]) => undoing === "withdraw" || then === "superseded");
  describe.each(oneWay)("%s, and %s, after the next check", (state, undoing, _says, then) => {
    it.each(Object.entries(REPORTS[then] ?? {}))("the report %s: %s", async (reported, effect) => {
      const { undo, ask, effectOf } = await deviceIn(state);
      await undo(undoing);
      await ask();
      expect(await effectOf(reported as ReportedState)).toBe(effect);
    });
  });

  it("a device that has answered gets what takes the place of the wrong release at once", async () => {
    const { undo, ask, report, stateNow } = await deviceIn("downloading");
    await undo("withdraw, supersede");
    expect(await ask()).toBe("none NO_FIRMWARE, stop");
    await report("cancelled");
    expect(await ask()).toBe("update 3.0.0");
    expect(await stateNow()).toBe("cancelled");
  });

  it("a device that cannot stop any more finishes with the wrong release, and then gets what takes its place", async () => {
    const { undo, ask, report, stateNow } = await deviceIn("downloaded");
    await undo("withdraw, supersede");
    await ask();
    await report("cancel_rejected");
    expect(await ask()).toBe("update 2.0.0");
    await report("succeeded");
    expect(await stateNow()).toBe("succeeded");
  });

  it("a device that never hears of it is timed out like any other, and its late success is believed", async () => {
    const { undo, stateNow, effectOf } = await deviceIn("installing");
    await undo("stop");
    const { db, query } = database();
    await query("update upgrade_attempts set deadline_at = now() - interval '1 second' where deadline_at is not null");
    await runJob(db, timeOutAttempts({ intervalMs: 1 }));
    expect(await stateNow()).toBe("timed_out");
    expect(await effectOf("succeeded")).toBe("succeeded");
  });
});
