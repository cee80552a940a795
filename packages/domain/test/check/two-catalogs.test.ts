import { takeRolloutStep } from "@ota/domain";
import { LockFactory, MemoryState, MemoryStore } from "@ota/lock-core";
import { hasPostgres, withoutRowLocks } from "@ota/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFleet, overMemory, quietLogger, startChecks } from "../support/fleet.ts";
import { decidedAgain, openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

/** The insert under the lock of the device's row. */
const INSERT = /^\s*with upgrade as \(\s*insert into upgrades /;

/** Two firmwares that one device may have, and two checks of which one does not know of the second yet. */
describe.skipIf(!hasPostgres)("two checks that see different catalogs", () => {
  let database: PostgresTestDatabase;
  beforeEach(async () => {
    database = await openPostgresClient();
  });
  afterEach(() => database.close());

  const unlocked = (text: string) => decidedAgain(withoutRowLocks.rewrite?.(text) ?? text);

  const live = () =>
    database.query(`
      select f.version, a.state from upgrade_attempts a join firmware f on f.id = a.firmware_id order by a.id
    `);
  const records = () => database.query("select f.version from upgrades u join firmware f on f.id = u.firmware_id");

  it("the one that decided by the old catalog decides again before it writes", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const asked = Promise.withResolvers<void>();
    const granted = Promise.withResolvers<void>();
    const memory = new MemoryStore();
    const slow = overMemory({
      async acquire(request) {
        asked.resolve();
        await granted.promise;
        return memory.acquire(request);
      },
      release: (request) => memory.release(request),
    });
    const early = startChecks(database.db, { locks: new LockFactory(slow, { logger: quietLogger }) });
    const late = startChecks(database.db);

    const earlyAnswer = early.checkForUpdate({ tokenHash });
    await asked.promise;
    await fleet.release("2.0.0");
    const lateAnswer = await late.checkForUpdate({ tokenHash });
    granted.resolve();

    expect(lateAnswer).toMatchObject({ how: "created", firmware: { version: "2.0.0" } });
    expect(await earlyAnswer).toMatchObject({ how: "joined", firmware: { version: "2.0.0" } });
    expect(await live()).toEqual([{ version: "2.0.0", state: "offered" }]);
    expect(await records()).toEqual([{ version: "2.0.0" }]);
  });

  it.each([
    ["at once", (text: string) => text, /insert into upgrades /],
    ["under the lock of the device's row", decidedAgain, INSERT],
  ])("a rollout that is paused while a decision waits to be written %s is offered to nobody", async (...how) => {
    const [, rewrite, insert] = how;
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0", { startRollout: false });
    const rollout = await fleet.rollout("1.0.0");
    const { tokenHash } = await fleet.device();
    const reached = Promise.withResolvers<void>();
    const free = Promise.withResolvers<void>();
    const slow = database.hooked({
      rewrite,
      before: async (text) => {
        if (!insert.test(text)) return;
        reached.resolve();
        await free.promise;
      },
    });
    const answer = startChecks(slow).checkForUpdate({ tokenHash });
    await reached.promise;
    await takeRolloutStep(database.db, { actor: { kind: "system" }, rolloutId: rollout.id, step: "pause" });
    free.resolve();
    expect(await answer).toMatchObject({ decision: "none", reason: "ROLLOUT_PAUSED" });
    expect(await records()).toEqual([]);
  });

  it("by the constraints alone the slower one loses, leaves no empty record, and answers like the winner", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const reached = Promise.withResolvers<void>();
    const free = Promise.withResolvers<void>();
    const slow = database.hooked({
      rewrite: unlocked,
      before: async (text) => {
        if (!INSERT.test(text)) return;
        reached.resolve();
        await free.promise;
      },
    });
    const early = startChecks(slow);
    const late = startChecks(database.hooked({ rewrite: unlocked }));

    const earlyAnswer = early.checkForUpdate({ tokenHash });
    await reached.promise;
    await fleet.release("2.0.0");
    const lateAnswer = await late.checkForUpdate({ tokenHash });
    free.resolve();

    expect(lateAnswer).toMatchObject({ how: "created", firmware: { version: "2.0.0" } });
    expect(await earlyAnswer).toMatchObject({ how: "joined", firmware: { version: "2.0.0" } });
    expect(early.events.filter(({ kind }) => kind === "conflict_lost")).toHaveLength(1);
    expect(await live()).toEqual([{ version: "2.0.0", state: "offered" }]);
    expect(await records()).toEqual([{ version: "2.0.0" }]);
  });

  it("the one with the new catalog waits for the device's row and supersedes what the other has just offered", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const reached = Promise.withResolvers<void>();
    const waiting = Promise.withResolvers<void>();
    const state = new MemoryState();
    const locks = () => new LockFactory(new MemoryStore({ state }), { logger: quietLogger });
    const early = startChecks(
      database.hooked({
        rewrite: decidedAgain,
        before: async (text) => {
          if (!INSERT.test(text)) return;
          reached.resolve();
          await waiting.promise;
        },
      }),
      { locks: locks() },
    );
    const late = startChecks(
      database.hooked({
        before: async (text) => {
          if (text.endsWith(" for update")) waiting.resolve();
        },
      }),
      { locks: locks() },
    );

    const earlyAnswer = early.checkForUpdate({ tokenHash });
    await reached.promise;
    await fleet.release("2.0.0");
    const lateAnswer = late.checkForUpdate({ tokenHash });

    expect(await earlyAnswer).toMatchObject({ how: "created", firmware: { version: "1.0.0" } });
    expect(await lateAnswer).toMatchObject({ how: "created", firmware: { version: "2.0.0" } });
    expect(await live()).toEqual([
      { version: "1.0.0", state: "superseded" },
      { version: "2.0.0", state: "offered" },
    ]);
  });
});
