import { expect, it } from "vitest";
import { describeOnDatabases } from "../support/databases.ts";
import { createFleet, startChecks } from "../support/fleet.ts";

describeOnDatabases("checkForUpdate", (database) => {
  it("creates the record at the first check and finds it at the next", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    await fleet.release("1.0.0");
    const device = await fleet.device();
    const checks = startChecks(db);
    const first = await checks.checkForUpdate({ tokenHash: device.tokenHash });
    expect(first).toMatchObject({
      decision: "update",
      how: "created",
      attempt: { number: 1, state: "offered" },
      firmware: { version: "1.0.0" },
    });
    const second = await checks.checkForUpdate({ tokenHash: device.tokenHash });
    expect(second).toMatchObject({ ...first, how: "found", pollAfterSeconds: expect.any(Number) });
    const report = await checks.recordReport({
      tokenHash: device.tokenHash,
      attemptId: 1,
      report: { state: "downloading", details: ["a", 'b"{},'], progressPercent: 10 },
    });
    expect(report).toEqual({ attempt: { id: 1, state: "downloading" }, effect: "moved" });
    await checks.close();
  });
});
