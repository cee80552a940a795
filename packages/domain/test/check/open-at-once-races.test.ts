import { cancelUpgrade, changeAllowList, deleteDevice, type UpdateAnswer, updateDevice } from "@ota/domain";
import { hasPostgres, until } from "@ota/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const actor = { kind: "system" } as const;

describe.skipIf(!hasPostgres)("what happens between the decision on an attempt and its opening", () => {
  let database: PostgresTestDatabase;
  beforeEach(async () => {
    database = await openPostgresClient();
  });
  afterEach(() => database.close());

  /** Runs `work` in a transaction that stays open until it is told to end. */
  async function holding(work: (tx: Parameters<Parameters<typeof database.db.transaction>[0]>[0]) => Promise<unknown>) {
    const begun = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const done = database.db.transaction(async (tx) => {
      await work(tx);
      begun.resolve();
      await over.promise;
    });
    await Promise.race([begun.promise, done]);
    return async () => {
      over.resolve();
      await done;
    };
  }

  const waiting = (kind: string) => async () => {
    const [row] = await database.query(
      `select count(*)::int as n from pg_locks where not granted and locktype in (${kind})`,
    );
    return row?.["n"] === 1;
  };

  /** Checks whose opening stops for `meanwhile` after it has taken its snapshot, and before it locks a row. */
  async function checksWithin(meanwhile: () => Promise<unknown>) {
    const open = await holding((tx) => tx.execute("select pg_advisory_xact_lock(77)"));
    const rewrite = (text: string) =>
      text.replace(
        "devices.xmin::text = given.row_writer",
        "devices.xmin::text = given.row_writer and (select pg_advisory_xact_lock_shared(77)) is not null",
      );
    const checks = startChecks(database.hooked({ rewrite }));
    const happened = (async () => {
      try {
        await until("the opening has begun", waiting("'advisory'"));
        await meanwhile();
      } finally {
        await open();
      }
    })();
    return { checks, happened };
  }

  async function onList() {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0", { startRollout: false });
    const { id: rolloutId } = await fleet.rollout("1.0.0", { percentageBasisPoints: 0 });
    const { tokenHash, id } = await fleet.device();
    const change = (kind: "allow" | "disallow") => () =>
      changeAllowList(database.db, { actor, rolloutId, change: kind, deviceIds: [id] });
    await change("allow")();
    return { tokenHash, disallow: change("disallow") };
  }

  it("a device that is taken from the allow-list gets none, if it was before the statement", async () => {
    const { tokenHash, disallow } = await onList();
    let first = true;
    const before = async (text: string) => {
      if (!/ skip locked/.test(text) || !first) return;
      first = false;
      await disallow();
    };
    const answer = await startChecks(database.hooked({ before })).checkForUpdate({ tokenHash });
    expect(answer).toMatchObject({ reason: "NOT_IN_ROLLOUT" });
  });

  it("a device that is taken from the allow-list gets none, if it was within the statement", async () => {
    const { tokenHash, disallow } = await onList();
    const { checks, happened } = await checksWithin(disallow);
    const answer = await checks.checkForUpdate({ tokenHash });
    await happened;
    expect(answer).toMatchObject({ reason: "NOT_IN_ROLLOUT" });
  });

  it("a device that is blocked gets none", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash, id: deviceId } = await fleet.device();
    const { checks, happened } = await checksWithin(() =>
      updateDevice(database.db, { actor, deviceId, blocked: true }),
    );
    const answer = await checks.checkForUpdate({ tokenHash });
    await happened;
    expect(answer).toMatchObject({ reason: "DEVICE_BLOCKED" });
  });

  it("a device that is deleted gets none, and another one of the batch gets its own", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const [gone, other] = [await fleet.device(), await fleet.device()];
    const { checks, happened } = await checksWithin(() => deleteDevice(database.db, { actor, deviceId: gone.id }));
    const answers = await Promise.allSettled(
      [gone, other].map(({ tokenHash }) => checks.checkForUpdate({ tokenHash })),
    );
    await happened;
    expect(answers).toMatchObject([
      { status: "rejected", reason: { code: "SERVICE_BUSY" } },
      { status: "fulfilled", value: { how: "created" } },
    ]);
  });

  it("an upgrade that an operator cancels gets no further attempt", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const { upgradeId } = (await startChecks(database.db).checkForUpdate({ tokenHash })) as UpdateAnswer;
    await database.query("update upgrade_attempts set state = 'failed', closed_at = now() - interval '10 days'");
    const { checks, happened } = await checksWithin(() => cancelUpgrade(database.db, { actor, upgradeId }));
    const answer = await checks.checkForUpdate({ tokenHash });
    await happened;
    expect(answer).toMatchObject({ reason: "UPGRADE_CANCELLED" });
  });

  it("a device whose rollout counts no places does not wait for another rollout's places", async () => {
    const [counted, free] = [await createFleet(database.db), await createFleet(database.db)];
    await counted.release("1.0.0", { startRollout: false });
    await counted.rollout("1.0.0", { maxTotal: 10 });
    await free.release("1.0.0");
    const [one, other] = [await counted.device(), await free.device()];
    const checks = startChecks(database.db);
    // With both catalogs known, the two that follow are decided in the same turn.
    for (const fleet of [counted, free]) await checks.checkForUpdate({ tokenHash: (await fleet.device()).tokenHash });
    const release = await holding((tx) => tx.execute("select from rollout_counters for update"));
    const late = checks.checkForUpdate({ tokenHash: one.tokenHash });
    const answer = await Promise.race([
      checks.checkForUpdate({ tokenHash: other.tokenHash }),
      new Promise((resolve) => setTimeout(resolve, 3_000, "nothing yet")),
    ]);
    await release();
    expect(await late).toMatchObject({ how: "created" });
    expect(answer).toMatchObject({ how: "created" });
  });
});
