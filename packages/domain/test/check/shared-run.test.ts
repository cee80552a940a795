import type { UpdateAnswer } from "@ota/domain";
import { LockFactory, MemoryStore } from "@ota/lock-core";
import { describe, expect, it } from "vitest";
import { freshDatabase, openPglite } from "../support/databases.ts";
import { createFleet, overMemory, quietLogger, startChecks } from "../support/fleet.ts";

describe("checks of one process that share a run", () => {
  const database = freshDatabase(openPglite);

  it("name one of them as the creator, although all are given its answer", async () => {
    const { db } = database();
    const fleet = await createFleet(db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    // The first run waits until all have come, and then finds the lock held by somebody else; the second is shared.
    const allHaveCome = Promise.withResolvers<void>();
    const memory = new MemoryStore();
    let asked = 0;
    const store = overMemory({
      async acquire(request) {
        asked += 1;
        if (asked > 1) return memory.acquire(request);
        await allHaveCome.promise;
        return { outcome: "contended" };
      },
    });
    const locks = new LockFactory(store, { logger: quietLogger });
    const checks = startChecks(db, { locks, settings: { lockMaxAttempts: 1 } });
    const asking = Promise.allSettled(Array.from({ length: 10 }, () => checks.checkForUpdate({ tokenHash })));
    // A session executes statements in their order: when this check is answered, all of the others have looked.
    await startChecks(db).checkForUpdate({ tokenHash: (await fleet.device()).tokenHash });
    allHaveCome.resolve();

    const hows = (await asking).map((answer) =>
      answer.status === "rejected" ? answer.reason.code : (answer.value as UpdateAnswer).how,
    );
    const joined = Array.from({ length: 8 }, () => "joined");
    expect(hows.toSorted()).toEqual(["SERVICE_BUSY", "created", ...joined]);
    expect(checks.events.filter(({ kind }) => kind === "created")).toHaveLength(1);
  });
});
