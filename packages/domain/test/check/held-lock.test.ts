import { LockFactory } from "@ota/lock-core";
import { describe, expect, it } from "vitest";
import { freshDatabase, openPglite } from "../support/databases.ts";
import { createFleet, overMemory, quietLogger, startChecks } from "../support/fleet.ts";

describe("a check that finds its lock held all the time", () => {
  const database = freshDatabase(openPglite);

  /** Checks whose lock is never theirs; what its holder does meanwhile is given. */
  function crowdedOut(holder: () => Promise<unknown>) {
    const store = overMemory({
      async acquire() {
        await holder();
        return { outcome: "contended" };
      },
    });
    const locks = new LockFactory(store, { logger: quietLogger });
    return startChecks(database().db, { locks, settings: { lockMaxAttempts: 1 } });
  }

  it("answers with the attempt that the holder has made", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const holder = startChecks(db);
    const answer = await crowdedOut(() => holder.checkForUpdate({ tokenHash })).checkForUpdate({ tokenHash });
    expect(answer).toMatchObject({ decision: "update", how: "joined" });
    expect(await holder.checkForUpdate({ tokenHash })).toEqual({ ...answer, how: "found" });
  });

  it("answers SERVICE_BUSY where the holder has made nothing yet", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    await expect(crowdedOut(async () => {}).checkForUpdate({ tokenHash })).rejects.toMatchObject({
      code: "SERVICE_BUSY",
    });
  });
});
