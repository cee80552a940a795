import {
  cancelUpgrade,
  type GivenTerms,
  takeRolloutStep,
  type UpdateAnswer,
  type UpdateChecks,
  updateDevice,
  withdrawFirmware,
} from "@ota/domain";
import { hasPostgres, until } from "@ota/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const actor = { kind: "system" } as const;
const AT_ONCE = / skip locked/;

describe.skipIf(!hasPostgres)("an attempt that is opened at once", () => {
  let database: PostgresTestDatabase;
  beforeEach(async () => {
    database = await openPostgresClient();
  });
  afterEach(() => database.close());

  /** Checks, before whose first opening something else happens; and what they send. */
  function checksAfter(meanwhile: () => Promise<unknown>) {
    const sent: string[] = [];
    const before = async (text: string) => {
      sent.push(text.trim());
      if (AT_ONCE.test(text) && sent.filter((one) => AT_ONCE.test(one)).length === 1) await meanwhile();
    };
    const checks = startChecks(database.hooked({ before }));
    return { checks, rowLocks: () => sent.filter((text) => text.endsWith("for update")).length };
  }

  const attempts = () =>
    database.query(`
      select f.version, a.n, a.state from upgrades u
      join firmware f on f.id = u.firmware_id left join upgrade_attempts a on a.upgrade_id = u.id
      order by f.version, a.n
    `);

  const counters = () => database.query("select live, granted from rollout_counters order by rollout_id");

  it("is opened without a lock of its own on the device's row", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash, id } = await fleet.device();
    const { checks, rowLocks } = checksAfter(async () => {});
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ how: "created", attempt: { number: 1 } });
    expect(rowLocks()).toBe(0);
    expect(
      await database.query(`select last_seen_at is not null as seen from devices where public_id = '${id}'`),
    ).toEqual([{ seen: true }]);
  });

  it("is not, when the device was blocked since it was decided", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash, id: deviceId } = await fleet.device();
    const { checks, rowLocks } = checksAfter(() => updateDevice(database.db, { actor, deviceId, blocked: true }));
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ reason: "DEVICE_BLOCKED" });
    expect(rowLocks()).toBe(1);
    expect(await attempts()).toEqual([]);
  });

  it("is not, when the firmware was withdrawn since then", async () => {
    const fleet = await createFleet(database.db);
    const { id: firmwareId } = await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const { checks } = checksAfter(() => withdrawFirmware(database.db, { actor, firmwareId }));
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ reason: "NO_FIRMWARE" });
    expect(await attempts()).toEqual([]);
  });

  it("is not, when the device's history is another since then: the next attempt has the next number", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const other = startChecks(database.db);
    const { checks } = checksAfter(async () => {
      await other.checkForUpdate({ tokenHash });
      // Closed, and forgiven: nothing but the history says that there was one.
      await database.query("update upgrade_attempts set state = 'failed', closed_at = now()");
      await database.query("update upgrades set attempts_forgiven = 1");
    });
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ how: "created", attempt: { number: 2 } });
    expect(await attempts()).toMatchObject([
      { n: 1, state: "failed" },
      { n: 2, state: "offered" },
    ]);
  });

  it("is not, when an operator has cancelled the upgrade since then, whose next attempt it would have been", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const { upgradeId } = (await startChecks(database.db).checkForUpdate({ tokenHash })) as UpdateAnswer;
    await database.query("update upgrade_attempts set state = 'failed', closed_at = now() - interval '10 days'");
    const { checks } = checksAfter(() => cancelUpgrade(database.db, { actor, upgradeId }));
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ reason: "UPGRADE_CANCELLED" });
    expect(await attempts()).toMatchObject([{ n: 1 }]);
  });

  it("does not wait for somebody who works on another device of the same turn", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const [locked, free] = [await fleet.device(), await fleet.device()];
    const held = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    const holder = database.db.transaction(async (tx) => {
      await tx.execute(`select from devices where public_id = '${locked.id}' for update`);
      taken.resolve();
      await held.promise;
    });
    await taken.promise;
    const { checks, rowLocks } = checksAfter(async () => {});
    const waiting = checks.checkForUpdate({ tokenHash: locked.tokenHash });
    expect(await checks.checkForUpdate({ tokenHash: free.tokenHash })).toMatchObject({ how: "created" });
    await until("the other one waits for the lock", async () => rowLocks() === 1);
    held.resolve();
    await holder;
    expect(await waiting).toMatchObject({ how: "created" });
  });

  describe("in a rollout that counts its places", () => {
    async function fleetWith(terms: GivenTerms, devices: number) {
      const fleet = await createFleet(database.db);
      await fleet.release("1.0.0", { startRollout: false });
      const rollout = await fleet.rollout("1.0.0", terms);
      const crowd = await Promise.all(Array.from({ length: devices }, () => fleet.device()));
      const check = (checks: UpdateChecks) =>
        Promise.all(crowd.map(({ tokenHash }) => checks.checkForUpdate({ tokenHash })));
      return { rollout, check };
    }

    it("takes a place for each of those that ask together", async () => {
      const { check } = await fleetWith({ maxTotal: 10, maxConcurrent: 10 }, 8);
      const { checks, rowLocks } = checksAfter(async () => {});
      const answers = await check(checks);
      expect(answers.map(({ decision }) => decision)).toEqual(Array.from({ length: 8 }, () => "update"));
      expect(rowLocks()).toBe(0);
      expect(await counters()).toEqual([{ live: 8, granted: 8 }]);
    });

    it("takes no place of the total again for a device that had one", async () => {
      const { check } = await fleetWith({ maxTotal: 3, maxConcurrent: 3 }, 3);
      const { checks, rowLocks } = checksAfter(async () => {});
      await check(checks);
      await database.query("update upgrade_attempts set state = 'failed', closed_at = now() - interval '10 days'");
      await database.query("update rollout_counters set live = 0");
      await check(checks);
      expect(rowLocks()).toBe(0);
      expect(await counters()).toEqual([{ live: 3, granted: 3 }]);
    });

    it.each([{ maxTotal: 4 }, { maxConcurrent: 4 }])("gives its last places one by one: %j", async (terms) => {
      const { check } = await fleetWith(terms, 10);
      const answers = await check(startChecks(database.db));
      const reasons = answers.map((answer) => (answer.decision === "none" ? answer.reason : answer.decision));
      expect(reasons.toSorted()).toEqual([
        ...Array.from({ length: 6 }, () => "CAP_REACHED"),
        ...Array.from({ length: 4 }, () => "update"),
      ]);
      expect(await counters()).toEqual([{ live: 4, granted: 4 }]);
    });

    it("opens none once the rollout has reached a threshold", async () => {
      const { check } = await fleetWith({ maxTotal: 10 }, 2);
      const { checks } = checksAfter(() =>
        database.query("update rollout_counters set reached = 'error_threshold', reached_at = now()"),
      );
      expect(await check(checks)).toMatchObject([{ reason: "ROLLOUT_PAUSED" }, { reason: "ROLLOUT_PAUSED" }]);
      expect(await counters()).toEqual([{ live: 0, granted: 0 }]);
    });

    it("opens none when the rollout is paused while it waits for the counter", async () => {
      const { rollout, check } = await fleetWith({ maxTotal: 10 }, 2);
      const paused = Promise.withResolvers<void>();
      const asked = Promise.withResolvers<void>();
      const pausing = database.db.transaction(async (tx) => {
        await takeRolloutStep(tx, { actor, rolloutId: rollout.id, step: "pause" });
        paused.resolve();
        await asked.promise;
      });
      await paused.promise;
      const answers = check(startChecks(database.db));
      await until("the check waits", async () => {
        const [waiting] = await database.query("select count(*)::int as n from pg_locks where not granted");
        return waiting?.["n"] === 1;
      });
      asked.resolve();
      await pausing;
      expect(await answers).toMatchObject([{ reason: "ROLLOUT_PAUSED" }, { reason: "ROLLOUT_PAUSED" }]);
      expect(await attempts()).toEqual([]);
      expect(await counters()).toEqual([{ live: 0, granted: 0 }]);
    });
  });

  it("leaves no record without one where somebody without any lock has another open, and the others get theirs", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const [hurried, other] = [await fleet.device(), await fleet.device()];
    const first = startChecks(database.db);
    for (const { tokenHash } of [hurried, other])
      await first.checkForUpdate({ tokenHash, reported: { version: "0.1.0" } });
    await database.query("update upgrade_attempts set state = 'failed', closed_at = now()");
    await fleet.release("2.0.0", { startRollout: false });
    await fleet.rollout("2.0.0", { maxConcurrent: 10 });

    const open = Promise.withResolvers<void>();
    const inserted = Promise.withResolvers<void>();
    const intruder = database.db.transaction(async (tx) => {
      // Nothing but the index on open attempts stands between this and the check.
      await tx.execute(`
        insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state)
        select u.id, u.device_id, u.firmware_id, u.rollout_id, 2, 'offered'
        from upgrades u join devices d on d.id = u.device_id where d.public_id = '${hurried.id}'
      `);
      inserted.resolve();
      await open.promise;
    });
    const { checks } = checksAfter(async () => {
      await inserted.promise;
      setTimeout(open.resolve, 200);
    });
    const answers = await Promise.all(
      [hurried, other].map(({ tokenHash }) => checks.checkForUpdate({ tokenHash, reported: { version: "0.1.0" } })),
    );
    await intruder;
    expect(checks.events.filter(({ kind }) => kind === "conflict_lost")).toHaveLength(1);
    expect(answers).toMatchObject([{ firmware: { version: "2.0.0" } }, { firmware: { version: "2.0.0" } }]);
    expect(await attempts()).toEqual([
      ...[
        { version: "1.0.0", n: 1, state: "failed" },
        { version: "1.0.0", n: 1, state: "failed" },
      ],
      { version: "1.0.0", n: 2, state: "superseded" },
      ...[
        { version: "2.0.0", n: 1, state: "offered" },
        { version: "2.0.0", n: 1, state: "offered" },
      ],
    ]);
  });
});
