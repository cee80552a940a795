import { getDevice, getUpgrade, type UpdateAnswer } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

describe.skipIf(!hasPostgres)("a check that reports the new version", () => {
  let database: PostgresTestDatabase;
  beforeEach(async () => {
    database = await openPostgresClient();
  });
  afterEach(() => database.close());

  it("does not overwrite how the attempt ended meanwhile, and still keeps the version", async () => {
    const { db } = database;
    const fleet = await createFleet(db);
    await fleet.release("2.0.0");
    const device = await fleet.device();
    const { tokenHash } = device;
    const checks = startChecks(db);
    const { attempt, upgradeId } = (await checks.checkForUpdate({ tokenHash })) as UpdateAnswer;

    const reached = Promise.withResolvers<void>();
    const reported = Promise.withResolvers<void>();
    const slow = startChecks(
      database.hooked({
        before: async (text) => {
          if (!text.includes("update upgrade_attempts")) return;
          reached.resolve();
          await reported.promise;
        },
      }),
    );
    const answer = slow.checkForUpdate({ tokenHash, reported: { version: "2.0.0" } });
    await reached.promise;
    await checks.recordReport({ tokenHash, attemptId: attempt.id, report: { state: "failed" } });
    reported.resolve();

    expect(await answer).toMatchObject({ decision: "none", reason: "UP_TO_DATE" });
    const { attempts } = await getUpgrade(db, { upgradeId });
    expect(attempts).toMatchObject([{ state: "failed", events: [{ toState: "offered" }, { toState: "failed" }] }]);
    expect(await getDevice(db, { deviceId: device.id })).toMatchObject({ reportedVersion: "2.0.0" });
  });
});
